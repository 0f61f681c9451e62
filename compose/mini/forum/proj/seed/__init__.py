"""Fills an empty database with the discussions of a county; the same world gives the same rows."""
