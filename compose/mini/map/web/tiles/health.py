"""The deep probe: finds a place, checks the known length of a route, renders a tile, and changes nothing."""

import json
import os
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import psycopg

from tiles import draw

# The search address that the page uses, through nginx.
SEARCH, ROUTES = "http://127.0.0.1/nominatim", {"car": 5000, "bike": 5001, "foot": 5002}
# A tile without any object has a few hundred bytes, the middle of a town has thousands.
LEAST_TILE = 2000


class Probe:
    def __init__(self, known, painter, database):
        self.known, self.painter, self.database = known, painter, database
        self.connection, self.lock = None, threading.Lock()

    def look(self):
        """Returns the status and the answer: the measured values, or the failed step and the reason."""
        started, answer = time.monotonic(), {"ok": False}
        steps = [("roads", self.count_roads), ("search", self.search), ("route_metres", self.route), ("tile_bytes", self.draw), ("disk_write", self.write)]
        for name, step in steps:
            try:
                answer[name] = step()
            except Exception as error:  # noqa: BLE001 - whatever is wrong is the answer
                return 503, {**answer, "failed": name, "reason": str(error).strip() or type(error).__name__}
        # This process is the worker that renders, so its answer proves that the worker runs.
        answer.update(ok=True, worker=True, milliseconds=round((time.monotonic() - started) * 1000, 1))
        return 200, answer

    def count_roads(self):
        with self.lock:
            try:
                count = self.ask("SELECT count(*) FROM roads")
            except psycopg.OperationalError:
                # The connection may lead to the previous database, which was exchanged. A new connection decides.
                if self.connection is None:
                    raise
                self.connection.close()
                count = self.ask("SELECT count(*) FROM roads")
        if not count:
            raise RuntimeError("the table of roads is empty")
        return count

    def ask(self, query):
        if self.connection is None or self.connection.closed:
            self.connection = psycopg.connect(**self.database, connect_timeout=3, autocommit=True)
        return self.connection.execute(query).fetchone()[0]

    def search(self):
        place = self.known["place"]
        found = fetch(f"{SEARCH}/search?format=jsonv2&q={urllib.parse.quote(place)}")
        if not any(place in result["display_name"] for result in found):
            raise RuntimeError(f"the search does not find {place}")
        return len(found)

    def route(self):
        (south, west), (north, east) = self.known["from"], self.known["to"]
        seen = {}
        for profile, port in ROUTES.items():
            answer = fetch(f"http://127.0.0.1:{port}/route/v1/driving/{west},{south};{east},{north}?overview=false")
            seen[profile] = answer["routes"][0]["distance"]
            wanted = self.known["metres"][profile]
            if abs(seen[profile] - wanted) > 1:
                raise RuntimeError(f"the way by {profile} has {seen[profile]} m, expected {wanted} m")
        return seen

    def draw(self):
        # The tile is rendered for each probe, not taken from the cache.
        x, y = draw.tile_at(14, *self.known["from"])
        size = len(self.painter.draw(14, x, y, 1).tostring("png8:m=h"))
        if size < LEAST_TILE:
            raise RuntimeError(f"the tile of {self.known['place']} has {size} bytes, expected at least {LEAST_TILE}")
        return size

    def write(self):
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())
        return True


def fetch(address):
    with urllib.request.urlopen(address, timeout=5) as answer:
        return json.load(answer)
