-- The twin of slidingwindowcounter.go. Products that a double could not hold are
-- split at a factor of 1000.
local MAX_INSTANT, MAX_LIMIT = 9007199254740991, 1000000

local function read(s, now)
  if s == '' then return now, 0, 0 end
  if #s ~= 16 then return nil end
  local at, previous, current = struct.unpack('>I8I4I4', s)
  if at > MAX_INSTANT or previous > MAX_LIMIT or current > MAX_LIMIT then return nil end
  return at, previous, current
end

local function pack(at, previous, current) return struct.pack('>I8I4I4', at, previous, current) end

-- n of the window before, weighed by the part of it that is still covered.
local function weigh(n, covered, window)
  local low = n % 1000
  local high = (n - low) / 1000 * covered
  local over = high % window
  local sum = over * 1000 + low * covered
  local rest = sum % window
  return (high - over) / window * 1000 + (sum - rest) / window + (rest > 0 and 1 or 0)
end

local function decayed(n, room, window) -- n is more than room
  local rest = window % n
  local part = room * rest
  return window - room * ((window - rest) / n) - (part - part % n) / n
end

local function take(s, now, cost, _, limit, window)
  local at, previous, current = read(s, now)
  if not at then return nil end
  local stepped = at > now
  local elapsed = now % window
  local passed = ((now - elapsed) - (at - at % window)) / window
  if passed == 1 then
    previous, current = current, 0
  elseif passed > 1 then
    previous, current = 0, 0
  elseif passed < 0 then
    previous, current = 0, math.min(previous + current, MAX_LIMIT)
  end
  local weighed = weigh(previous, window - elapsed, window)
  if cost == 0 or current + weighed + cost > limit then
    local reset = 0
    if current > 0 then
      reset = 2 * window - elapsed
    elseif previous > 0 then
      reset = window - elapsed
    end
    local wait, new = 0, nil
    if cost > 0 then
      local room = limit - cost
      if room >= current then
        wait = decayed(previous, room - current, window) - elapsed
      else
        wait = window - elapsed + decayed(current, room, window)
      end
      if stepped then new = pack(now, previous, current) end
    end
    return wait, math.max(0, limit - current - weighed), reset, new
  end
  return 0, limit - current - weighed - cost, 2 * window - elapsed, pack(now, previous, current + cost)
end

local function refund(s, now, at, cost, _, limit, window)
  local last, previous, current = read(s, now)
  if not last then return nil end
  local passed = ((last - last % window) - (at - at % window)) / window
  if passed == 0 then
    current = math.max(0, current - cost)
  elseif passed == 1 then
    previous = math.max(0, previous - cost)
  end
  if current == 0 and previous == 0 then return '' end
  return pack(last, previous, current)
end

return take, refund
