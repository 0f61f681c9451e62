-- Which of the declared stores a reset compared, and what it left out; NULL before this was known.
ALTER TABLE resets ADD COLUMN compared TEXT;   -- JSON, see src/daemon/store/resets.rs
