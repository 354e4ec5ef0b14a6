-- The twin of distinct.go. A touch is 16 bytes: the member, a byte that is 128
-- if the member was known before, and the instant.
local MAX_INSTANT, MAX_LIMIT = 9007199254740991, 1000000

local function at(s, i) return (struct.unpack('>I7', s, 16 * i + 10)) end
local function again(s, i) return s:byte(16 * i + 9) >= 128 end

local function find(s, member)
  local from = 1
  while true do
    local p = s:find(member, from, true)
    if not p then return -1 end
    if p % 16 == 1 then return (p - 1) / 16 end
    from = p + 1
  end
end

local function valid(s)
  local n = #s / 16
  if #s % 16 ~= 0 or #s > 16000 then return false end
  return n == 0 or at(s, 0) <= at(s, n - 1) and at(s, n - 1) <= MAX_INSTANT
end

-- How many touches are at or before t.
local function upto(s, t)
  local lo, hi = 0, #s / 16
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if at(s, mid) <= t then lo = mid + 1 else hi = mid end
  end
  return lo
end

-- The log without its first drop touches and without the one at skip, with
-- instants of the future pulled to now.
local function copied(s, now, skip, drop)
  if skip >= drop then
    s = s:sub(16 * drop + 1, 16 * skip) .. s:sub(16 * skip + 17)
  else
    s = s:sub(16 * drop + 1)
  end
  local past = upto(s, now)
  if past == #s / 16 then return s end
  local out = {s:sub(1, 16 * past)}
  for i = past, #s / 16 - 1 do
    out[#out + 1] = s:sub(16 * i + 1, 16 * i + 9) .. struct.pack('>I7', now)
  end
  return table.concat(out)
end

local function take(s, now, cost, member, limit, window)
  if not valid(s) then return nil end
  local n = #s / 16
  local gone = upto(s, now - window)
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
    local wait = leaves(gone + live - limit)
    if wait <= 0 then return nil end -- out of order
    return wait, remaining, reset, new
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
