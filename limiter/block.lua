-- The twin of block.go.
local function take(s, now, cost, _, life)
  local till = 0
  if s ~= '' then
    if #s ~= 8 then return nil end
    till = struct.unpack('>I8', s)
    if till > 9007199254740991 then return nil end
  end
  local stop, reset = math.min(now + life, 9007199254740991), math.max(0, till - now)
  if cost > 0 and stop < till then return till - stop, 0, reset end
  if cost > 0 and stop > now then return 0, 0, stop - now, struct.pack('>I8', stop) end
  return 0, till > now and 0 or 1, reset
end

local function refund(s)
  if s ~= '' and (#s ~= 8 or struct.unpack('>I8', s) > 9007199254740991) then return nil end
  return s
end

return take, refund
