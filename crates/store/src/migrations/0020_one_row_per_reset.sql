-- A reset has one row, written when it has ended. While it goes on, its instance names it, so that the next daemon can tell
-- which resets a crash cut off.
ALTER TABLE instances ADD COLUMN reset_id TEXT;             -- the reset that goes on
ALTER TABLE instances ADD COLUMN reset_strategy TEXT;       -- the way that is being tried
ALTER TABLE instances ADD COLUMN reset_requested_at TEXT;   -- RFC 3339, UTC

-- The snapshot that a reset leads to: it stays while a named one serves.
ALTER TABLE instances ADD COLUMN baseline TEXT;
UPDATE instances SET baseline = snapshot
    WHERE snapshot IN (SELECT id FROM snapshots WHERE baseline_key IS NOT NULL);
