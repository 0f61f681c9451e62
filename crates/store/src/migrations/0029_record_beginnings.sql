-- The beginnings of records, which episodes take over from those that they were forked from.
ALTER TABLE episodes ADD COLUMN record_beginning TEXT;      -- the id; NULL for an episode that is no fork or not recorded
