-- The state of declared stores lies in the state root, as trees by these names.
ALTER TABLE snapshots ADD COLUMN state TEXT NOT NULL DEFAULT '[]';   -- JSON array of names
