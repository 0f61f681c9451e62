"""Renders tiles with Mapnik from the database `gis`, and serves the health probe of the map."""
