-- The twin of distinct.go. A touch is 16 bytes: the member, a byte that is 128
-- if the member was known before, and the instant.
local MAX_INSTANT, MAX_LIMIT = 9007199254740991, 1000000

local function at(s, i) return (struct.unpack('>I7', s, 16 * i + 10)) end
local function again(s, i) return s:byte(16 * i + 9) >= 128 end

local function find(s, member)
  for i = 0, #s / 16 - 1 do
    if s:sub(16 * i + 1, 16 * i + 8) == member then return i end
  end
  return -1
end

local function valid(s)
  if #s % 16 ~= 0 or #s > 16000 then return false end
  local last = 0
  for i = 0, #s / 16 - 1 do
    local t = at(s, i)
    if t < last or t > MAX_INSTANT or s:byte(16 * i + 9) % 128 ~= 0 then return false end
    last = t
  end
  return true
end

-- The log without its first drop touches and without the one at skip, with
-- instants of the future pulled to now.
local function copied(s, now, skip, drop)
  local n = #s / 16
  local out = {}
  for i = drop, n - 1 do
    if i ~= skip then
      local touch = s:sub(16 * i + 1, 16 * i + 16)
      if at(s, i) > now then touch = touch:sub(1, 9) .. struct.pack('>I7', now) end
      out[#out + 1] = touch
    end
  end
  return table.concat(out)
end

local function take(s, now, cost, member, limit, window)
  if not valid(s) then return nil end
  local n = #s / 16
  local gone = 0
  while gone < n and at(s, gone) + window <= now do gone = gone + 1 end
  local live = n - gone
  local function leaves(i) return math.min(at(s, i), now) + window - now end
  local remaining = math.max(0, limit - live)
  local reset = live > 0 and leaves(n - 1) or 0
  if cost == 0 then return 0, remaining, reset end
  local known = find(s, member)
  local fresh = known < gone
  if fresh and live >= limit then
    local new = nil
    if at(s, n - 1) > now then new = copied(s, now, -1, 0) end
    return leaves(gone + live - limit), remaining, reset, new
  end
  local drop, flag = 0, '\128'
  if fresh then
    remaining, flag = remaining - 1, '\0'
    if known < 0 and n >= limit then drop = 1 end
  end
  return 0, remaining, window, copied(s, now, known, drop) .. member .. flag .. struct.pack('>I7', now)
end

local function refund(s, now, when, cost, member)
  if not valid(s) then return nil end
  local i = find(s, member)
  if i < 0 or cost < MAX_LIMIT and (at(s, i) ~= when or again(s, i)) then return s end
  return s:sub(1, 16 * i) .. s:sub(16 * i + 17)
end

return take, refund
