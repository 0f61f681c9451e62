-- What a baseline was made from, apart from who built it where: an imported one stands for one that would have to be made.
ALTER TABLE snapshots ADD COLUMN recipe TEXT;
ALTER TABLE snapshots ADD COLUMN imported_at TEXT;   -- NULL if taken here

-- Snapshots that are being imported: what has arrived of them is kept until they are whole, or nobody goes on for a day.
CREATE TABLE imports (
    snapshot    TEXT NOT NULL PRIMARY KEY,
    name        TEXT,
    manifest    TEXT NOT NULL,                  -- JSON, see src/export/manifest.rs
    touched_at  TEXT NOT NULL
);
