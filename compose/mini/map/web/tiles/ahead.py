"""Renders the tiles that visitors see first, when the image is built: ahead.py MAP.json TARGET. The tiles cover the whole
map from the lowest zoom to the highest one that fits the limit."""

import json
import sys
from pathlib import Path

from tiles import draw

# The maximum number of tiles, about 10 MB. The limit includes the streets of the fictional county, and the roads of a
# country.
MOST = 2000


def blocks(zoom, bounds):
    """Returns the upper left tiles of the blocks that cover the map."""
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
