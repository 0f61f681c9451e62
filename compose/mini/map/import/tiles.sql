-- Land is the area that the coast encloses. An extract without a closed coast is land from edge to edge.
CREATE TABLE land AS
    SELECT row_number() OVER (ORDER BY ST_Area(geom) DESC) AS id, geom
    FROM (SELECT (ST_Dump(ST_Polygonize(geom))).geom FROM (SELECT ST_Union(geom) AS geom FROM coast) AS lines) AS rings;
INSERT INTO land SELECT 1, ST_MakeEnvelope(-20037508.35, -20037508.35, 20037508.35, 20037508.35, 3857)
    WHERE NOT EXISTS (SELECT FROM land);
CREATE INDEX ON land USING gist (geom);
ALTER TABLE land ADD PRIMARY KEY (id);
DELETE FROM spatial_ref_sys WHERE srid NOT IN (3857, 4326);
