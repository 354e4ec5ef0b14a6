-- The twin of fixedwindow.go.
local MAX_INSTANT = 9007199254740991

local function read(s, now)
  if s == '' then return now, 0 end
  if #s ~= 16 then return nil end
  local last, count = struct.unpack('>I8I8', s)
  if last > MAX_INSTANT or count > 1000000 then return nil end
  return last, count
end

local function take(s, now, cost, _, limit, window)
  local last, count = read(s, now)
  if not last then return nil end
  local stepped = last > now
  if not stepped and last - last % window ~= now - now % window then count = 0 end
  local next_ = window - now % window
  if cost == 0 or count + cost > limit then
    local wait, new = 0, nil
    if cost > 0 then
      wait = next_
      if stepped then new = struct.pack('>I8I8', now, count) end
    end
    return wait, math.max(0, limit - count), count > 0 and next_ or 0, new
  end
  return 0, limit - count - cost, next_, struct.pack('>I8I8', now, count + cost)
end

local function refund(s, now, at, cost, _, limit, window)
  local last, count = read(s, now)
  if not last then return nil end
  if last - last % window == at - at % window then count = count - cost end
  if count <= 0 then return '' end
  return struct.pack('>I8I8', last, count)
end

return take, refund
