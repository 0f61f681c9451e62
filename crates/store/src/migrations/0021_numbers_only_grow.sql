-- The highest number of a generation of the instances that were forgotten. Another engine may still have containers of theirs,
-- and the state root their trees: what is made later must not have their numbers.
ALTER TABLE installation ADD COLUMN generations INTEGER NOT NULL DEFAULT 0;
