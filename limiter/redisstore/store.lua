-- Decides calls by the laws' twins: laws[i] = {take, refund}, made above. It does
-- one after the other, so that calls which share a key see one another.
--
-- ARGV[1] is the instant in microseconds, or '' for the server's clock. Each
-- further one is a call with all its charges, see codec.go. KEYS are the keys of
-- all charges. The reply is one string, see codec.go again.

local TAKE, REFUND = 1, 3 -- modes; 2 is peek
local LAW, FLAGS, COUNT, COST, AT, MEMBER, NUMBERS = 1, 2, 3, 4, 5, 6, 7 -- of a charge
local WAIT, REMAINING, RESET, NEW, DELAY, LOCKED = 1, 2, 3, 4, 5, 6 -- of what a law says
local BARRED = 128 -- in FLAGS, beside the group
local TAKEN, ALLOWED, IS_LOCKED, ALIEN = 1, 2, 4, 8 -- in a decision
local ALIEN_LIFE = 3600000000 -- what is not ours heals within the hour, at the latest

local now = ARGV[1]
local slack = 0 -- added to every TTL, in milliseconds
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now * 1
  slack = 3600000 -- keys expire by the server's clock, which runs apart from this one
end

-- What the law says of charge c in state s at a cost.
local function ask(c, s, cost)
  return laws[c[LAW]][1](s, now, cost, c[MEMBER], unpack(c, NUMBERS, NUMBERS + c[COUNT] - 1))
end

local function millis(us) return math.max(1, math.ceil(us / 1000)) + slack end

-- A key without a TTL would live for ever; nothing of ours writes one.
local function mend_ttl(key, reset)
  if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, millis(reset)) end
end

-- One call, of n charges, after so many keys of others.
local function decide(call, keys, n)
  local mode, charges, states, at = call:byte(1), {}, {}, 6
  for i = 1, n do
    local count = call:byte(at + 2)
    local c = {struct.unpack('>I1I1I1I5I8c8' .. ('I8'):rep(count), call, at)}
    charges[i], at = c, c[NUMBERS + count]
    local s = redis.pcall('GET', KEYS[keys + i])
    if type(s) ~= 'table' then
      states[i] = s or ''
    elseif s.err:find('WRONGTYPE', 1, true) ~= 1 then
      error(s)
    end -- and what is no string has no state
  end

  if mode == REFUND then
    local out = {}
    for i = 1, n do
      local c, s = charges[i], states[i]
      local new = s and laws[c[LAW]][2](s, now, c[AT], c[COST], c[MEMBER], unpack(c, NUMBERS, NUMBERS + c[COUNT] - 1))
      if not new then
        out[i] = '\8'
      else
        out[i] = '\0'
        local wait = new ~= s and ask(c, s, 1) or 0
        if new == '' then
          redis.call('DEL', KEYS[keys + i])
        elseif new ~= s then
          redis.call('SET', KEYS[keys + i], new, 'KEEPTTL')
          local _, _, reset = ask(c, new, 0)
          mend_ttl(KEYS[keys + i], reset)
        end
        -- Who remembers that it denied must not any more, see released.go. One
        -- who may not publish can refund all the same.
        if wait > 0 then redis.pcall('PUBLISH', 'ag:released', KEYS[keys + i]) end
      end
    end
    return table.concat(out)
  end

  local said, votes, alien, torn = {}, true, false, {}
  for i = 1, n do
    local c, s = charges[i], states[i]
    local barred = c[FLAGS] >= BARRED
    local d = s and {ask(c, s, barred and 0 or c[COST])}
    if not d or not d[WAIT] then
      alien = true
    else
      said[i] = d
      if barred or d[WAIT] > 0 then
        local group = c[FLAGS] % 64
        if group == 0 then votes = false else torn[group] = true end
      end
    end
  end

  local out = {struct.pack('>I8', now)}
  for i = 1, n do
    local c, d, s, key = charges[i], said[i], states[i], KEYS[keys + i]
    local flags = 0
    if not d then
      mend_ttl(key, ALIEN_LIFE)
      flags, d = ALIEN, {0, 0, 0}
    else
      local allowed = d[WAIT] == 0 and c[FLAGS] < BARRED
      local taken = mode == TAKE and allowed and votes and not alien and not torn[c[FLAGS] % 64]
      if d[NEW] and (taken or mode == TAKE and not allowed) then
        -- For as long as the law needs it, and never for less than it lives already:
        -- in a rolling deploy other numbers may need it for longer.
        local px = millis(d[RESET])
        if s ~= '' then px = math.max(px, redis.call('PTTL', key)) end
        redis.call('SET', key, d[NEW], 'PX', px)
      elseif s ~= '' then
        local _, _, reset = ask(c, s, 0)
        mend_ttl(key, reset)
      end
      if taken then
        flags = TAKEN + ALLOWED
      elseif allowed then
        flags = ALLOWED
        local _
        _, d[REMAINING], d[RESET] = ask(c, s, 0)
      else
        d[DELAY] = 0
      end
      if d[LOCKED] then flags = flags + IS_LOCKED end
    end
    out[i + 1] = struct.pack('>I1I8I8I8I8', flags, d[WAIT], d[REMAINING], d[RESET], d[DELAY] or 0)
  end
  return table.concat(out)
end

local replies, keys = {}, 0
for i = 2, #ARGV do
  local n = struct.unpack('>I4', ARGV[i], 2)
  local ok, reply = pcall(decide, ARGV[i], keys, n)
  if not ok then
    reply = tostring(type(reply) == 'table' and reply.err or reply)
    -- This server executes nothing, and the client must look for another; nothing
    -- can have been written.
    local code = reply:match('^%u*')
    if code == 'READONLY' or code == 'MASTERDOWN' or code == 'CLUSTERDOWN' then return redis.error_reply(reply) end
  end
  replies[i - 1] = struct.pack('>I1I4', ok and 1 or 0, #reply) .. reply
  keys = keys + n
end
return table.concat(replies)
