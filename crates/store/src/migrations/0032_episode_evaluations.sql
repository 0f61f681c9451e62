-- The evaluations of an episode, without their evidence.
CREATE TABLE episode_evaluations (
    seq      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    episode  TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    at       TEXT NOT NULL,
    task     TEXT NOT NULL,
    verdict  TEXT NOT NULL,
    reward   REAL                               -- NULL if the task was neither accomplished nor failed
);
CREATE INDEX episode_evaluations_by_episode ON episode_evaluations (episode, seq);
