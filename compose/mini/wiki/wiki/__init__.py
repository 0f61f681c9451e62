"""Writes an encyclopaedia about the world: one HTML page per thing, list and category."""
