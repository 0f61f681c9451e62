"""The fictional county as OpenStreetMap data: everything that world.json tells of, and the land in between."""
