-- The accounts that were signed in when a snapshot was taken: their sessions are part of its state.
CREATE TABLE sessions (
    snapshot  TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    account   TEXT NOT NULL,
    place     TEXT NOT NULL,                    -- host:port of the public URL, which cookies are bound to
    session   TEXT NOT NULL,                    -- JSON, see sessions.rs
    PRIMARY KEY (snapshot, account)
);
