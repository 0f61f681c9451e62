-- Generations are also made ahead of time, as standbys, so the newest need not be the one that serves.
ALTER TABLE instances ADD COLUMN serving INTEGER;   -- the generation that serves, or that is being made to
ALTER TABLE instances ADD COLUMN made INTEGER;      -- the generation that its containers are labelled with: that of their making
UPDATE instances SET serving = generation, made = generation WHERE generation > 0;
