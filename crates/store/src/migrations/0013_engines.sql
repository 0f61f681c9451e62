-- The engines that this installation has worked with.
CREATE TABLE engines (
    id        TEXT NOT NULL PRIMARY KEY,        -- its own id and the folder of its data: engines of one host may share an id
    endpoint  TEXT NOT NULL,                    -- where it answered last
    met_at    TEXT NOT NULL
);
ALTER TABLE installation ADD COLUMN engine TEXT;        -- the one in use; NULL before the first has answered
ALTER TABLE instances ADD COLUMN engine TEXT;           -- the one that has its containers; NULL if none is known
ALTER TABLE snapshots ADD COLUMN engine TEXT;           -- the one that has its images; NULL if none is known
ALTER TABLE snapshots ADD COLUMN missing_since TEXT;    -- when that one was first seen without them; NULL while it has them

-- Generations that were made on an engine which is not in use now: their containers are there, and their trees stay here.
CREATE TABLE elsewhere (
    engine    TEXT NOT NULL,
    instance  TEXT NOT NULL,
    made      INTEGER NOT NULL,
    PRIMARY KEY (engine, instance, made)
);
