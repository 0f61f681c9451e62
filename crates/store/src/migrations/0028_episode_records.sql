-- The requests of an episode that are recorded: none, writes or all.
ALTER TABLE episodes ADD COLUMN record TEXT NOT NULL DEFAULT 'none';
