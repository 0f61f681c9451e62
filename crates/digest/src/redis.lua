-- Returns a page of keys, or only the mark if the cursor is "mark". ARGV: database, cursor.
-- The answer consists of lines: "ok <mark> <next cursor>", then for each key its name in hexadecimal, its type, the hash of
-- its value, and its expiry time in milliseconds since 1970, or -1 if it does not expire.
-- DUMP is not used for sets and hashes, because it returns their elements in an order that differs between processes.
local function field(text, name)
    return string.match(text, '\n' .. name .. ':([^\r\n]*)') or ''
end

local server, persistence = redis.call('INFO', 'server'), redis.call('INFO', 'persistence')
-- The number of changes since the last save, with fields that distinguish saves and starts.
local mark = table.concat({
    field(server, 'run_id'), field(persistence, 'rdb_saves'), field(persistence, 'rdb_last_save_time'),
    field(persistence, 'rdb_changes_since_last_save')}, '/')
if ARGV[2] == 'mark' then return 'ok ' .. mark .. ' 0' end

local function sorted_pairs(flat)
    local fields, values = {}, {}
    for index = 1, #flat, 2 do
        fields[#fields + 1] = flat[index]
        values[flat[index]] = flat[index + 1]
    end
    table.sort(fields)
    local parts = {}
    for _, name in ipairs(fields) do
        parts[#parts + 1] = name
        parts[#parts + 1] = values[name]
    end
    return parts
end

local function value(key, kind)
    if kind == 'string' then return {redis.call('GET', key)} end
    if kind == 'list' then return redis.call('LRANGE', key, 0, -1) end
    if kind == 'zset' then return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
    if kind == 'hash' then return sorted_pairs(redis.call('HGETALL', key)) end
    if kind == 'set' then
        local members = redis.call('SMEMBERS', key)
        table.sort(members)
        return members
    end
    -- Streams and types of modules have an order of their own, which DUMP keeps.
    return {redis.call('DUMP', key)}
end

local function expiry(key)
    local reply = redis.pcall('PEXPIRETIME', key)
    if type(reply) == 'number' then return reply end
    -- Servers before Redis 7 only report the remaining time, which differs between calls: 0 stands for any expiry time.
    return redis.call('PTTL', key) < 0 and -1 or 0
end

redis.call('SELECT', ARGV[1])
local page = redis.call('SCAN', ARGV[2], 'COUNT', 1000)
local lines = {'ok ' .. mark .. ' ' .. page[1]}
for _, key in ipairs(page[2]) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'none' then
        local parts = {}
        for index, part in ipairs(value(key, kind)) do
            parts[index] = #part .. ':' .. part
        end
        local name = string.gsub(key, '.', function(c) return string.format('%02x', string.byte(c)) end)
        lines[#lines + 1] = table.concat({name, kind, redis.sha1hex(table.concat(parts)), expiry(key)}, ' ')
    end
end
return table.concat(lines, '\n')
