"""Draws tiles with Mapnik from the database `gis`, and tells whether the map is well."""
