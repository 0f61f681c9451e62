"""Renders tiles in blocks of four by four, so that labels are not cut at every edge."""

import collections
import concurrent.futures
import math
import queue
import threading
import time

import mapnik

from tiles import style

SIZE, BLOCK, DEEPEST = 256, 4, 19
WORLD = 20037508.342789244

# Seconds between the attempts to render. The first use of a connection after the database was exchanged fails, and on a
# busy machine the database may not accept a new one in time; Mapnik opens another for the next attempt.
PAUSES = (0, 0.2, 1, None)


class Painter:
    """A few Mapnik maps, each used by one thread at a time, and a cache of the latest tiles."""

    def __init__(self, database, maps=2, kept=1024):
        mapnik.register_fonts("/usr/share/fonts/truetype/dejavu")
        sheet = style.build(database)
        self.free, self.kept = queue.Queue(), kept
        for _ in range(maps):
            board = mapnik.Map(SIZE, SIZE)
            mapnik.load_map_from_string(board, sheet)
            self.free.put(board)
        self.tiles, self.lock = collections.OrderedDict(), threading.Lock()
        # The blocks in progress: a browser requests several tiles of one block at the same time.
        self.begun = {}

    def tile(self, z, x, y):
        """Returns the PNG of a tile, from memory or rendered together with its neighbours."""
        across = min(BLOCK, 2 ** z)
        place = z, x - x % across, y - y % across
        with self.lock:
            if (z, x, y) in self.tiles:
                self.tiles.move_to_end((z, x, y))
                return self.tiles[z, x, y]
            block, is_mine = self.begun.get(place), place not in self.begun
            if is_mine:
                block = self.begun[place] = concurrent.futures.Future()
        if is_mine:
            self.finish(block, place)
        return block.result()[z, x, y]

    def finish(self, block, place):
        """Renders a block for all waiting requests, or passes the error on to them."""
        found, failed = {}, None
        try:
            found = self.block(*place)
        except Exception as error:  # noqa: BLE001 - each of those who wait raises it
            failed = error
        with self.lock:
            del self.begun[place]
            self.tiles.update(found)
            while len(self.tiles) > self.kept:
                self.tiles.popitem(last=False)
        if failed:
            block.set_exception(failed)
        else:
            block.set_result(found)

    def block(self, z, left, top):
        """Returns the PNGs of all tiles of a block, by their places."""
        across = min(BLOCK, 2 ** z)
        image = self.draw(z, left, top, across)
        return {(z, left + column, top + row): image.view(column * SIZE, row * SIZE, SIZE, SIZE).tostring("png8:m=h:z=6")
                for row in range(across) for column in range(across)}

    def draw(self, z, x, y, across):
        """Renders a square of tiles as one image."""
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
    """Returns the tile that contains a place."""
    count = 2 ** z
    y = (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2
    return int((lon + 180) / 360 * count), int(y * count)
