"""Draws the pictures below static/input_images: a dozen scenes and papers from the county, each with facts to read from
it."""
