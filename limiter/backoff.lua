-- The twin of backoff.go.
local MAX_INSTANT, MAX_LIMIT = 9007199254740991, 1000000

local function read(s, now)
  if s == '' then return now, 0, 0 end
  if #s ~= 16 then return nil end
  local last, gap, failures = struct.unpack('>I7I6I3', s)
  if last > MAX_INSTANT or failures > MAX_LIMIT then return nil end
  return last, gap, failures
end

local function pack(last, gap, failures) return struct.pack('>I7I6I3', last, gap, failures) end

local function take(s, now, cost, _, free, base, factor, most, lock, forget, beyond)
  local last, gap, failures = read(s, now)
  if not last then return nil end
  local stepped = last > now
  last = math.min(last, now)
  local function life(n) return n <= free and math.max(forget, base) or beyond end
  if failures > 0 and now >= last + life(failures) then last, gap, failures = now, 0, 0 end
  local reset = failures > 0 and last + life(failures) - now or 0
  local pause = 0
  if failures >= free then
    pause = base
    if factor > 1 then
      local n = failures - free
      while n > 0 and pause < most do
        pause, n = pause * factor, n - 1
      end
    end
    pause = math.min(pause, most)
  end
  local locked = lock > 0 and failures >= lock
  local remaining = 0
  if failures < free then
    remaining = free - failures
  elseif not locked and now >= last + pause then
    remaining = 1
  end
  if cost == 0 or cost > remaining then
    local wait, new = 0, nil
    if cost > 0 then
      if locked then
        wait = math.min(most, reset)
      elseif cost == 1 then
        wait = math.min(last + pause - now, reset)
      else
        wait = reset
      end
      if stepped then new = pack(last, gap, failures) end
    end
    return wait, remaining, reset, new, 0, cost > 0 and locked
  end
  gap = failures > 0 and cost == 1 and now - last or 0
  failures = math.min(failures + cost, MAX_LIMIT)
  return 0, math.max(0, free - failures), life(failures), pack(now, gap, failures)
end

local function refund(s, now, at, cost)
  local last, gap, failures = read(s, now)
  if not last or cost >= MAX_LIMIT then return last and '' end
  if at == last then
    last, gap, failures = math.max(0, last - gap), 0, failures - cost
  elseif failures > cost and at <= last - gap then
    failures = failures - cost
  end
  if failures <= 0 then return '' end
  return pack(last, gap, failures)
end

return take, refund
