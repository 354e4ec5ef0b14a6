-- Puts notes on a list: KEYS are its sorted set and its hash. ARGV[1] is the instant
-- in microseconds or '', ARGV[2] how many notes it holds, and then come a key, its
-- label and its end for each.
local now, most = ARGV[1], tonumber(ARGV[2])
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000000 + time[2])
end

local function drop(keys)
  for i = 1, #keys do
    redis.call('ZREM', KEYS[1], keys[i])
    redis.call('HDEL', KEYS[2], keys[i])
  end
end

drop(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now))
for i = 3, #ARGV, 3 do
  redis.call('ZADD', KEYS[1], 'GT', ARGV[i + 2], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  if redis.call('ZCARD', KEYS[1]) > most then drop(redis.call('ZRANGE', KEYS[1], most / 2, most / 2)) end
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last then
  local life = string.format('%.0f', math.max(1, math.ceil((last - now) / 1000)))
  redis.call('PEXPIRE', KEYS[1], life)
  redis.call('PEXPIRE', KEYS[2], life)
end
return 1
