-- The date of the data; nothing is ever updated from outside.
DELETE FROM import_status;
INSERT INTO import_status (lastimportdate, indexed) VALUES ('2023-06-01 00:00:00+00', true);
-- A rough map of the countries of the whole earth; wanted are those of the extract.
DELETE FROM country_osm_grid WHERE country_code NOT IN (SELECT country_code FROM placex WHERE country_code IS NOT NULL);
DELETE FROM spatial_ref_sys WHERE srid NOT IN (3857, 4326);
