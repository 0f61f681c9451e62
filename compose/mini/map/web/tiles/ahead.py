"""Draws the tiles that visitors see first, when the image is built: ahead.py MAP.json TARGET. All of the map from the whole world
down to the zoom that still fits."""

import json
import sys
from pathlib import Path

from tiles import draw

# How many tiles at most: some 10 MB. The fictional county fits down to its streets; a country, to its roads.
MOST = 2000


def blocks(zoom, bounds):
    """The left upper tiles of the blocks that cover the map."""
    (south, west), (north, east) = bounds
    left, top = draw.tile_at(zoom, north, west)
    right, bottom = draw.tile_at(zoom, south, east)
    across = min(draw.BLOCK, 2 ** zoom)
    return [(x, y) for x in range(left - left % across, right + 1, across) for y in range(top - top % across, bottom + 1, across)], across


def main(described, target):
    bounds = json.loads(Path(described).read_text(encoding="utf-8"))["bounds"]
    painter, drawn = draw.Painter({"host": "/tmp", "port": 5432, "dbname": "gis", "user": "reader"}), 0
    for zoom in range(draw.DEEPEST + 1):
        places, across = blocks(zoom, bounds)
        if drawn + len(places) * across ** 2 > MOST:
            break
        for place in places:
            for (z, x, y), picture in painter.block(zoom, *place).items():
                file = Path(target, str(z), str(x), f"{y}.png")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(picture)
                drawn += 1
    print(f"{drawn} tiles down to zoom {zoom - 1}")


if __name__ == "__main__":
    main(*sys.argv[1:])
