-- The standbys that are ready, so that the next daemon finds them again. One that takes over, is brought back or is removed
-- has no row from before that on.
CREATE TABLE standbys (
    instance  TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    made      INTEGER NOT NULL,                 -- the generation that its containers are labelled with
    snapshot  TEXT NOT NULL,                    -- what it is of
    renewals  INTEGER NOT NULL,                 -- how often it has been brought back since it was made
    PRIMARY KEY (instance, made)
);

ALTER TABLE resets ADD COLUMN verified TEXT;    -- how much was compared with the snapshot: everything, moved, nothing
