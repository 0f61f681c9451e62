"""Fills an empty database with the talk of a county: same world in, same rows out."""
