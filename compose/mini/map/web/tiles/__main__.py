"""The tile server: GET /tile/Z/X/Y.png and GET /healthz on a port of this container only."""

import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

from tiles import draw, health

DATABASE = {"host": os.environ.get("DATABASE_HOST", "map-db"), "port": 5432, "dbname": "gis", "user": "reader", "password": "reader"}
TILE = re.compile(r"/tile/(\d{1,2})/(\d{1,7})/(\d{1,7})\.png")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    painter = probe = None

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/healthz":
            status, answer = self.probe.look()
            return self.answer(status, "application/json", json.dumps(answer).encode())
        found = TILE.fullmatch(path)
        z, x, y = map(int, found.groups()) if found else (99, 0, 0)
        if z > draw.DEEPEST or x >= 2 ** z or y >= 2 ** z:
            return self.answer(404, "text/plain", b"no such tile: expected /tile/Z/X/Y.png with Z from 0 to 19\n")
        return self.answer(200, "image/png", self.painter.tile(z, x, y))

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Requests are not logged; the server writes errors to stderr."""


def wait_for_database():
    """Waits for the database, because Mapnik connects to it when it reads the style."""
    while True:
        try:
            psycopg.connect(**DATABASE, connect_timeout=3).close()
            return
        except psycopg.OperationalError as error:
            print(f"tiles: waiting for the database: {error}", file=sys.stderr)
            time.sleep(0.2)


def main():
    wait_for_database()
    Handler.painter = draw.Painter({**DATABASE})
    with open("/srv/map/map.json", encoding="utf-8") as file:
        Handler.probe = health.Probe(json.load(file)["probe"], Handler.painter, DATABASE)
    server = ThreadingHTTPServer(("127.0.0.1", 8089), Handler)
    server.daemon_threads = True
    server.serve_forever()


main()
