"""The deep probe: proves that pages, search, database and disk work, and leaves nothing behind."""

import errno
import os
import sqlite3
import tempfile
import time

from server import notes, pages

BLOCK = b"\0" * (1 << 20)
DATA = "/data"


def write_database():
    # Takes the write lock and creates the journal in /data; the rollback restores the file.
    with notes.database() as connection:
        connection.execute("INSERT INTO note (title, text, created, changed) VALUES ('probe', '', '', '')")
        connection.rollback()


def write_disks():
    # The container's own layer, and the database's disk if that is a different one.
    places = {os.stat(place).st_dev: place for place in (DATA, tempfile.gettempdir())}
    for place in places.values():
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            written = file.write(BLOCK)
            if written != len(BLOCK):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())


# The number of notes depends on the visitors; the probe only checks that they can be read.
STEPS = [("notes", lambda: len(notes.all())), ("search", lambda: len(pages.search("basket"))),
         ("database_write", write_database), ("disk_write", write_disks)]


def look():
    """Returns 200 with the counts, or 503 with the failed step and the reason."""
    started, answer = time.monotonic(), {"ok": False}
    for name, step in STEPS:
        try:
            result = step()
        except (OSError, sqlite3.Error) as error:
            reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
            return 503, {**answer, "failed": name, "reason": reason}
        answer[name] = True if result is None else result
        if name == "search" and result == 0:
            return 503, {**answer, "failed": name, "reason": "no manual found"}
    return 200, {**answer, "ok": True, "milliseconds": round((time.monotonic() - started) * 1000, 1)}
