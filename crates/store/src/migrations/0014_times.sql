-- Times are compared as text, so all of them get nine digits of a second: `.5Z` came before `Z`, which it follows.
UPDATE installation SET created_at = substr(created_at, 1, 19) || '.' ||
    substr(rtrim(substr(created_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE created_at LIKE '____-__-__T__:__:__%Z';
UPDATE environments SET updated_at = substr(updated_at, 1, 19) || '.' ||
    substr(rtrim(substr(updated_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE updated_at LIKE '____-__-__T__:__:__%Z';
UPDATE instances SET since = substr(since, 1, 19) || '.' ||
    substr(rtrim(substr(since, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE since LIKE '____-__-__T__:__:__%Z';
UPDATE snapshots SET created_at = substr(created_at, 1, 19) || '.' ||
    substr(rtrim(substr(created_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE created_at LIKE '____-__-__T__:__:__%Z';
UPDATE snapshots SET imported_at = substr(imported_at, 1, 19) || '.' ||
    substr(rtrim(substr(imported_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE imported_at LIKE '____-__-__T__:__:__%Z';
UPDATE resets SET requested_at = substr(requested_at, 1, 19) || '.' ||
    substr(rtrim(substr(requested_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE requested_at LIKE '____-__-__T__:__:__%Z';
UPDATE resets SET finished_at = substr(finished_at, 1, 19) || '.' ||
    substr(rtrim(substr(finished_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE finished_at LIKE '____-__-__T__:__:__%Z';
UPDATE events SET at = substr(at, 1, 19) || '.' ||
    substr(rtrim(substr(at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE at LIKE '____-__-__T__:__:__%Z';
UPDATE health_rounds SET at = substr(at, 1, 19) || '.' ||
    substr(rtrim(substr(at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE at LIKE '____-__-__T__:__:__%Z';
UPDATE writes SET since = substr(since, 1, 19) || '.' ||
    substr(rtrim(substr(since, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE since LIKE '____-__-__T__:__:__%Z';
UPDATE imports SET touched_at = substr(touched_at, 1, 19) || '.' ||
    substr(rtrim(substr(touched_at, 21), 'Z') || '000000000', 1, 9) || 'Z' WHERE touched_at LIKE '____-__-__T__:__:__%Z';

-- Resets count up: which is newer does not depend on a clock that may be set back.
CREATE TABLE counted_resets (
    seq           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    instance      TEXT NOT NULL,
    strategy      TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    finished_at   TEXT,
    outcome       TEXT CHECK (outcome IN ('done', 'failed', 'cancelled', 'interrupted')),
    reason        TEXT,
    duration_ms   REAL,
    stages        TEXT NOT NULL DEFAULT '[]',   -- JSON array of { stage, duration_ms }
    verified      TEXT                          -- how much was compared with the snapshot: everything, moved, nothing
);
INSERT INTO counted_resets (id, instance, strategy, requested_at, finished_at, outcome, reason, duration_ms, stages, verified)
    SELECT id, instance, strategy, requested_at, finished_at, outcome, reason, duration_ms, stages, verified
    FROM resets ORDER BY rowid;
DROP TABLE resets;
ALTER TABLE counted_resets RENAME TO resets;
CREATE INDEX resets_by_instance ON resets (instance, seq);
CREATE INDEX resets_by_time ON resets (requested_at);
CREATE INDEX events_by_time ON events (at);
