"""The fictional county as OpenStreetMap data: all places of world.json, and the land between them."""
