-- The date of the data; no updates are ever imported.
DELETE FROM import_status;
INSERT INTO import_status (lastimportdate, indexed) VALUES ('2023-06-01 00:00:00+00', true);
-- The table covers the countries of the whole earth; only those of the extract are needed.
DELETE FROM country_osm_grid WHERE country_code NOT IN (SELECT country_code FROM placex WHERE country_code IS NOT NULL);
DELETE FROM spatial_ref_sys WHERE srid NOT IN (3857, 4326);
