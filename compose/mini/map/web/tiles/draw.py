"""Draws tiles: blocks of four by four at once, so that labels are not cut at every edge."""

import collections
import math
import queue
import threading
import time

import mapnik

from tiles import style

SIZE, BLOCK, DEEPEST = 256, 4, 19
WORLD = 20037508.342789244

# Seconds between the attempts at a drawing. The first use of a connection after the database was exchanged fails, and on a busy
# machine a new one may not be there in time; Mapnik makes another for the next attempt.
PAUSES = (0, 0.2, 1, None)


class Painter:
    """A few Mapnik maps, each used by one thread at a time, and the tiles that were drawn last."""

    def __init__(self, database, maps=2, kept=1024):
        mapnik.register_fonts("/usr/share/fonts/truetype/dejavu")
        sheet = style.build(database)
        self.free, self.kept = queue.Queue(), kept
        for _ in range(maps):
            board = mapnik.Map(SIZE, SIZE)
            mapnik.load_map_from_string(board, sheet)
            self.free.put(board)
        self.tiles, self.lock = collections.OrderedDict(), threading.Lock()

    def tile(self, z, x, y):
        """The PNG of a tile, from memory or drawn together with its neighbours."""
        with self.lock:
            if (z, x, y) in self.tiles:
                self.tiles.move_to_end((z, x, y))
                return self.tiles[z, x, y]
        across = min(BLOCK, 2 ** z)
        left, top = x - x % across, y - y % across
        image = self.draw(z, left, top, across)
        found = {(z, left + column, top + row): image.view(column * SIZE, row * SIZE, SIZE, SIZE).tostring("png8:m=h:z=6")
                 for row in range(across) for column in range(across)}
        with self.lock:
            self.tiles.update(found)
            while len(self.tiles) > self.kept:
                self.tiles.popitem(last=False)
        return found[z, x, y]

    def draw(self, z, x, y, across):
        """A square of tiles as one image."""
        width = 2 * WORLD / 2 ** z
        box = mapnik.Box2d(-WORLD + x * width, WORLD - (y + across) * width, -WORLD + (x + across) * width, WORLD - y * width)
        board = self.free.get()
        try:
            board.resize(across * SIZE, across * SIZE)
            board.zoom_to_box(box)
            for pause in PAUSES:
                image = mapnik.Image(across * SIZE, across * SIZE)
                try:
                    mapnik.render(board, image)
                    break
                except RuntimeError:
                    if pause is None:
                        raise
                    time.sleep(pause)
            return image
        finally:
            self.free.put(board)


def tile_at(z, lat, lon):
    """The tile that holds a place."""
    count = 2 ** z
    y = (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2
    return int((lon + 180) / 360 * count), int(y * count)
