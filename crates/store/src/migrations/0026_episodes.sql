-- Episodes: those that have not ended, and those that ended a short time ago.
CREATE TABLE episodes (
    seq                  INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,   -- the order of arrival
    id                   TEXT NOT NULL UNIQUE,
    owner                TEXT NOT NULL,
    state                TEXT NOT NULL,
    ttl_ms               INTEGER NOT NULL,
    wait_ms              INTEGER NOT NULL,
    asked_at             TEXT NOT NULL,
    granted_at           TEXT,                         -- NULL before the grant
    deadline             TEXT,                         -- the end of the wait, the preparation or the time to live; NULL after the end
    left_ms              INTEGER,                      -- the time until the deadline when the row was written; NULL after the end
    is_held              INTEGER NOT NULL DEFAULT 0,   -- whether a connection holds the episode
    is_frozen_by_client  INTEGER NOT NULL DEFAULT 0,
    ended_at             TEXT,                         -- NULL before the end, as are the columns below
    ended_seq            INTEGER,                      -- the order of the ends
    ending_code          TEXT,
    ending_slot          TEXT,                         -- environment/site/number; NULL if no single slot failed
    ending_detail        TEXT
);
CREATE UNIQUE INDEX episodes_by_end ON episodes (ended_seq) WHERE ended_seq IS NOT NULL;

-- The sites of an episode, each with its slot. A site that all episodes share never has one.
CREATE TABLE episode_sites (
    episode      TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,              -- the order in the request
    environment  TEXT NOT NULL,
    site         TEXT NOT NULL,
    wanted       INTEGER,                       -- the number of the slot; NULL means any
    start        TEXT NOT NULL CHECK (start IN ('baseline', 'snapshot', 'fork')),
    start_from   TEXT,                          -- the name of the snapshot, or the id of the episode
    slot         INTEGER,                       -- the number of the slot that was granted; NULL before the grant
    generation   INTEGER,                       -- the generation that the episode got; NULL until the slot is prepared
    is_leased    INTEGER NOT NULL DEFAULT 0,    -- whether the slot belongs to the episode now
    PRIMARY KEY (episode, position)
);
-- No slot belongs to two episodes.
CREATE UNIQUE INDEX episode_leases ON episode_sites (environment, site, slot) WHERE is_leased = 1;

-- The hashes of the tokens that open an episode, from old to new.
CREATE TABLE episode_tokens (
    episode   TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    sha256    BLOB NOT NULL,
    PRIMARY KEY (episode, position)
);

-- The keys with which clients repeat requests.
CREATE TABLE episode_keys (
    owner    TEXT NOT NULL,
    key      TEXT NOT NULL,
    episode  TEXT NOT NULL UNIQUE REFERENCES episodes (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, key)
);

CREATE TABLE episode_labels (
    episode  TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    PRIMARY KEY (episode, name)
);

-- The changes of the states of episodes. A row is written in the transaction that makes the change.
CREATE TABLE episode_events (
    seq      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at       TEXT NOT NULL,
    episode  TEXT NOT NULL,
    state    TEXT NOT NULL,
    code     TEXT,                              -- how the episode ended; NULL for other states
    slot     TEXT,
    detail   TEXT
);
CREATE INDEX episode_events_by_episode ON episode_events (episode, seq);
