-- What watching has seen: one row for each round of probes of a serving instance. Bounded in number, by instance and kind.
CREATE TABLE health_rounds (
    seq          INTEGER NOT NULL PRIMARY KEY,
    instance     TEXT NOT NULL,
    generation   INTEGER NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('shallow', 'deep')),
    at           TEXT NOT NULL,                 -- when the round began
    duration_ms  REAL NOT NULL,
    ok           INTEGER NOT NULL,
    reason       TEXT                           -- of a round that failed: the probe and what it saw
);
CREATE INDEX health_rounds_by_instance ON health_rounds (instance, kind, seq);
