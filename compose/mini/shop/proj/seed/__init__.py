"""Fills an empty database with the sample shop: same world in, same rows out."""
