-- One row: which installation this state directory is. Everything in the engine bears this id.
CREATE TABLE installation (
    id          TEXT NOT NULL PRIMARY KEY,
    created_at  TEXT NOT NULL
);

-- The definitions that `arenad up` was last given, as texts: a daemon that restarts works from these,
-- not from files that may have been edited since.
CREATE TABLE environments (
    name              TEXT NOT NULL PRIMARY KEY,
    root              TEXT NOT NULL,
    environment_path  TEXT NOT NULL,
    environment_text  TEXT NOT NULL,
    compose_path      TEXT NOT NULL,
    compose_text      TEXT NOT NULL,
    dotenv_path       TEXT,
    dotenv_text       TEXT,
    variables         TEXT NOT NULL,            -- JSON object
    updated_at        TEXT NOT NULL
);

CREATE TABLE instances (
    id           TEXT NOT NULL PRIMARY KEY,     -- environment/site/number
    environment  TEXT NOT NULL REFERENCES environments (name) ON DELETE CASCADE,
    site         TEXT NOT NULL,
    desired      TEXT NOT NULL CHECK (desired IN ('up', 'down')),
    state        TEXT NOT NULL,
    reason       TEXT,
    hint         TEXT,
    generation   INTEGER NOT NULL DEFAULT 0,    -- of the newest containers, whether or not they came to serve
    snapshot     TEXT REFERENCES snapshots (id),
    since        TEXT NOT NULL
);

CREATE TABLE snapshots (
    id            TEXT NOT NULL PRIMARY KEY,    -- content-derived
    environment   TEXT NOT NULL,
    site          TEXT NOT NULL,
    baseline_key  TEXT,                         -- SHA-256 of what the baseline was made from; NULL if taken by hand
    name          TEXT,                         -- given by hand
    images        TEXT NOT NULL,                -- JSON object: service -> image id
    volumes       TEXT NOT NULL,                -- JSON object: service -> { mount path -> archive file }
    size_bytes    INTEGER NOT NULL,
    created_at    TEXT NOT NULL
);
CREATE UNIQUE INDEX snapshots_by_name ON snapshots (environment, site, name) WHERE name IS NOT NULL;
CREATE INDEX snapshots_by_key ON snapshots (environment, site, baseline_key);

CREATE TABLE resets (
    id            TEXT NOT NULL PRIMARY KEY,
    instance      TEXT NOT NULL,
    strategy      TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    finished_at   TEXT,
    outcome       TEXT CHECK (outcome IN ('done', 'failed', 'cancelled', 'interrupted')),
    reason        TEXT,
    duration_ms   REAL,
    stages        TEXT NOT NULL DEFAULT '[]'    -- JSON array of { stage, duration_ms }
);
CREATE INDEX resets_by_instance ON resets (instance, requested_at);

CREATE TABLE events (
    seq       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at        TEXT NOT NULL,
    kind      TEXT NOT NULL,
    instance  TEXT,
    message   TEXT NOT NULL
);
