-- Decides calls by the laws' twins: laws[i] = {take, refund}, made above. It does
-- one after the other, so that calls which share a key see one another.
--
-- ARGV[1] is the instant in microseconds, or '' for the server's clock. Then, for
-- each call, there is its mode (take, peek or refund), the number of its charges,
-- and a charge each, see codec.go. KEYS are those of all charges.

local LAW, ADVISORY, BARRED, COST, AT, MEMBER, WAIT, REMAINING, RESET, NEW, DELAY, LOCKED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local TAKEN, ALLOWED, IS_LOCKED, ALIEN = 1, 2, 4, 8
local MEMBER_AT, NUMBERS_AT = 17, 25
local ALIEN_LIFE = 3600000000 -- what is not ours heals within the hour, at the latest
local FORMATS = {[0] = '', '>I8', '>I8I8', '>I8I8I8', '>I8I8I8I8', '>I8I8I8I8I8', '>I8I8I8I8I8I8', '>I8I8I8I8I8I8I8', '>I8I8I8I8I8I8I8I8'}

local now = ARGV[1]
local slack = 0 -- added to every TTL, in milliseconds
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now * 1
  slack = 3600000 -- keys expire by the server's clock, which runs apart from this one
end

-- The state under a key; nil if what is there is no string.
local function get(key)
  local s = redis.pcall('GET', key)
  if type(s) == 'table' then return nil end
  return s or ''
end

local function millis(us) return math.max(1, math.ceil(us / 1000)) + slack end

-- Writes a state for as long as the law needs it, and never for less than it
-- lives already: in a rolling deploy other numbers may need it for longer.
local function set(key, state, reset, is_new)
  local px = millis(reset)
  if not is_new then px = math.max(px, redis.call('PTTL', key)) end
  redis.call('SET', key, state, 'PX', px)
end

-- A key without a TTL would live for ever; nothing of ours writes one.
local function mend_ttl(key, reset)
  if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, millis(reset)) end
end

local function allows(c) return c[WAIT] == 0 and not c[BARRED] end

-- One call, of n charges, after so many keys and arguments of others.
local function decide(mode, keys, args, n)
  local charges, states, votes, alien = {}, {}, true, false

  local function ask(i, cost)
    local c, a = charges[i], ARGV[args + i]
    return laws[c[LAW]][1](states[i], now, cost, a:sub(MEMBER_AT, MEMBER_AT + 7), struct.unpack(FORMATS[a:byte(3)], a, NUMBERS_AT))
  end

  for i = 1, n do
    local a = ARGV[args + i]
    local law, flags, count, cost, at = struct.unpack('>I1I1I1I5I8', a)
    local c = {law, flags % 64, flags >= 128, cost, at}
    charges[i] = c
    states[i] = get(KEYS[keys + i])
    if not states[i] then
      alien = true
    elseif mode ~= 'refund' then
      c[WAIT], c[REMAINING], c[RESET], c[NEW], c[DELAY], c[LOCKED] = ask(i, c[BARRED] and 0 or cost)
      if not c[WAIT] then
        states[i], alien = nil, true
      elseif c[ADVISORY] == 0 and c[WAIT] > 0 then
        votes = false
      end
    end
  end

  if mode == 'refund' then
    local out = {}
    for i = 1, n do
      local c, a, s = charges[i], ARGV[args + i], states[i]
      local new = s and laws[c[LAW]][2](s, now, c[AT], c[COST], a:sub(MEMBER_AT, MEMBER_AT + 7), struct.unpack(FORMATS[a:byte(3)], a, NUMBERS_AT))
      if not new then
        out[i] = '\8'
      else
        out[i] = '\0'
        local wait = new ~= s and ask(i, 1) or 0
        if new == '' then
          redis.call('DEL', KEYS[keys + i])
        elseif new ~= s then
          redis.call('SET', KEYS[keys + i], new, 'KEEPTTL')
          states[i] = new
          local _, _, reset = ask(i, 0)
          mend_ttl(KEYS[keys + i], reset)
        end
        -- Who remembers that it denied must not any more, see released.go. One
        -- who may not publish can refund all the same.
        if wait > 0 then redis.pcall('PUBLISH', 'ag:released', KEYS[keys + i]) end
      end
    end
    return table.concat(out)
  end

  local groups = {}
  if not alien then
    for i = 1, n do
      local c = charges[i]
      if c[ADVISORY] > 0 and not allows(c) then groups[c[ADVISORY]] = false end
    end
  end

  local out = {}
  for i = 1, n do
    local c, flags = charges[i], 0
    if not states[i] then
      mend_ttl(KEYS[keys + i], ALIEN_LIFE)
      out[i] = struct.pack('>I1I8I8I8I8', ALIEN, 0, 0, 0, 0)
    else
      local allowed = allows(c)
      local taken = mode == 'take' and not alien and votes and allowed and groups[c[ADVISORY]] ~= false
      local exists = states[i] ~= ''
      if taken then
        flags = TAKEN
        set(KEYS[keys + i], c[NEW], c[RESET], not exists)
      else
        if mode == 'take' and c[NEW] and not allowed then
          set(KEYS[keys + i], c[NEW], c[RESET], not exists)
        elseif exists then
          local _, _, reset = ask(i, 0)
          mend_ttl(KEYS[keys + i], reset)
        end
        if allowed then
          local _
          _, c[REMAINING], c[RESET] = ask(i, 0)
        end
      end
      if allowed then flags = flags + ALLOWED end
      if c[LOCKED] then flags = flags + IS_LOCKED end
      out[i] = struct.pack('>I1I8I8I8I8', flags, c[WAIT], c[REMAINING], c[RESET], allowed and c[DELAY] or 0)
    end
  end
  return struct.pack('>I8', now) .. table.concat(out)
end

local replies, keys, args = {}, 0, 1
while args < #ARGV do
  local mode, n = ARGV[args + 1], tonumber(ARGV[args + 2])
  local ok, reply = pcall(decide, mode, keys, args + 2, n)
  if not ok then
    reply = tostring(type(reply) == 'table' and reply.err or reply)
    -- The client looks for another server then; nothing can have been written.
    if reply:find('READONLY', 1, true) == 1 then return redis.error_reply(reply) end
  end
  replies[#replies + 1] = (ok and '+' or '-') .. reply
  keys, args = keys + n, args + 2 + n
end
return replies
