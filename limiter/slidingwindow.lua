-- The twin of slidingwindow.go. An entry of the log is 8 bytes.
local MAX_INSTANT = 9007199254740991

local function entry(s, i) return (struct.unpack('>I8', s, 8 * i + 1)) end

-- How many entries are at or before t.
local function upto(s, t)
  local lo, hi = 0, #s / 8
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if entry(s, mid) <= t then lo = mid + 1 else hi = mid end
  end
  return lo
end

-- The log with instants of the future pulled to now.
local function mended(s, now)
  local past = upto(s, now)
  local n = #s / 8
  if past == n then return s end
  return s:sub(1, 8 * past) .. struct.pack('>I8', now):rep(n - past)
end

local function valid(s)
  local n = #s
  if n % 8 ~= 0 or n > 8000 then return false end
  return n == 0 or entry(s, 0) <= entry(s, n / 8 - 1) and entry(s, n / 8 - 1) <= MAX_INSTANT
end

local function take(s, now, cost, _, limit, window)
  if not valid(s) then return nil end
  local n = #s / 8
  local gone = upto(s, now - window)
  local live = n - gone
  local function leaves(i) return math.min(entry(s, i), now) + window - now end
  local excess = live + cost - limit
  if cost == 0 or excess > 0 then
    local wait, new = 0, nil
    if cost > 0 then
      wait = leaves(gone + excess - 1)
      if wait <= 0 then return nil end -- out of order
      if entry(s, n - 1) > now then new = mended(s, now) end
    end
    return wait, math.max(0, limit - live), live > 0 and leaves(n - 1) or 0, new
  end
  local drop = math.max(0, n + cost - math.max(n, limit))
  local new = mended(s:sub(8 * drop + 1), now) .. struct.pack('>I8', now):rep(cost)
  return 0, limit - live - cost, window, new
end

local function refund(s, _, at, cost)
  if not valid(s) then return nil end
  local to = upto(s, at)
  local from = to
  while from > 0 and to - from < cost and entry(s, from - 1) == at do from = from - 1 end
  return s:sub(1, 8 * from) .. s:sub(8 * to + 1)
end

return take, refund
