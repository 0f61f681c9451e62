-- What is in the stores of a snapshot: what every instance made from it is compared with before it serves.
CREATE TABLE digests (
    snapshot  TEXT NOT NULL PRIMARY KEY REFERENCES snapshots (id) ON DELETE CASCADE,
    digest    TEXT NOT NULL                     -- JSON, see src/digest/content.rs
);
