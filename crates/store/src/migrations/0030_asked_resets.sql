-- Resets that harnesses have asked for and that are not known to have succeeded: those that run, and those that failed.
CREATE TABLE asked_resets (
    environment  TEXT NOT NULL,
    slot         INTEGER NOT NULL,
    site         TEXT NOT NULL,         -- empty for all sites of the environment
    began_at     TEXT NOT NULL,
    failure      TEXT,                  -- NULL while the reset runs
    PRIMARY KEY (environment, slot, site)
);
