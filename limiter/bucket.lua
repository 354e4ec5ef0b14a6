-- The twin of bucket.go, which says what the numbers mean. Products that a
-- double could not hold are split at a factor of 1000.
local MAX_WINDOW, MAX_INSTANT = 2678400000000, 9007199254740991

local function div(a, b) return (a - a % b) / b end
local function ceil(a, b) return -div(-a, b) end

-- The time that units take to leak.
local function until_(units, part, rate, per)
  if units == 0 then return 0 end
  local rest = per % rate
  return units * ((per - rest) / rate) + ceil(units * rest - part, rate)
end

local function reset(owed, part, rate, per)
  local rest = per % rate
  local whole = owed * ((per - rest) / rate)
  if whole > MAX_WINDOW or ceil(owed * rest, rate) > MAX_WINDOW - whole then return MAX_WINDOW end
  return until_(owed, part, rate, per)
end

-- owed, part, felt, stepped; or nil if s is no bucket.
local function read(s, now, capacity, rate, per)
  if s == '' then return 0, 0, 0, false end
  if #s ~= 16 then return nil end
  local at, part, owed = struct.unpack('>I7I6I3', s)
  if at > MAX_INSTANT or owed > 2000000 or part >= MAX_WINDOW then return nil end
  if part >= per then part = 0 end
  local felt = math.min(owed, capacity)
  if at > now then
    local back = math.min(at - now, MAX_WINDOW)
    if back > part then return owed, 0, felt, true end -- rate is at least 1
    part = part - back * rate
    return owed, math.max(0, part), felt, part < 0
  end
  local elapsed, leaked = now - at, 0
  if elapsed >= per then
    local periods = div(elapsed, per)
    if periods >= owed then return 0, 0, 0, false end
    leaked = periods * rate
    elapsed = elapsed - periods * per
  end
  local low = rate % 1000
  local high = elapsed * ((rate - low) / 1000)
  local over = high % per
  local sum = over * 1000 + elapsed * low + part
  part = sum % per
  leaked = leaked + (high - over) / per * 1000 + (sum - part) / per
  if leaked >= owed then return 0, 0, 0, false end
  return owed - leaked, part, math.max(0, felt - leaked), false
end

local function pack(at, part, owed) return struct.pack('>I7I6I3', at, part, owed) end

local function take(s, now, cost, _, capacity, rate, per, queue)
  local owed, part, felt, stepped = read(s, now, capacity, rate, per)
  if not owed then return nil end
  if cost == 0 or felt + cost > capacity then
    local wait, new = 0, nil
    if cost > 0 then
      wait = until_(felt + cost - capacity, part, rate, per)
      if stepped then new = pack(now, part, owed) end
    end
    return wait, capacity - felt, reset(owed, part, rate, per), new, cost == 0 and queue * until_(felt, part, rate, per) or 0
  end
  local delay = queue * until_(felt, part, rate, per)
  owed = owed + cost
  return 0, capacity - math.min(owed, capacity), reset(owed, part, rate, per), pack(now, part, owed), delay
end

local function refund(s, now, _, cost, _, capacity, rate, per)
  local owed = read(s, now, capacity, rate, per)
  if not owed then return nil end
  if owed <= cost then return '' end
  local at, part, all = struct.unpack('>I7I6I3', s)
  return pack(math.min(at, now), part, all - cost)
end

return take, refund
