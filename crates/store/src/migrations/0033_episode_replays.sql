-- The replays whose hosts an episode reaches, by their names, which a space separates.
ALTER TABLE episodes ADD COLUMN replays TEXT NOT NULL DEFAULT '';
