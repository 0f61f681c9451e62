-- What is known of writes to instances that are only read, of the generation that served then.
CREATE TABLE writes (
    instance    TEXT NOT NULL PRIMARY KEY,
    generation  INTEGER NOT NULL,
    requests    INTEGER NOT NULL,               -- those that may write
    since       TEXT NOT NULL,                  -- RFC 3339, UTC
    difference  TEXT                            -- what differed from the snapshot, if anything did
);
