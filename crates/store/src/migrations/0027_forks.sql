-- Copies of the state of running episodes, from which their forks start.
ALTER TABLE snapshots ADD COLUMN copied_from TEXT;      -- the episode whose state it is; NULL if it is no such copy
ALTER TABLE episode_sites ADD COLUMN copy TEXT;         -- the snapshot that holds the copy; NULL unless `start` is 'fork'
