"""Fills an empty database with the sample shop; the same world gives the same rows."""
