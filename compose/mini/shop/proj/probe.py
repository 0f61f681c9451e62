"""The deep probe: proves that the shop can read, search and write, and leaves nothing behind."""

import errno
import os
import tempfile
import time

from django.db import DatabaseError, connection, transaction
from django.http import JsonResponse
from haystack.query import SearchQuerySet

BLOCK = b"\0" * (1 << 20)
DATA = "/data"


def read_database():
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM catalogue_product WHERE is_public = 1")
        return cursor.fetchone()[0]


def write_database():
    # A temporary table is private to the connection; it is dropped at once because connections are reused.
    with connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE TEMPORARY TABLE probe (word VARCHAR(20)) ENGINE=InnoDB")
        cursor.execute("INSERT INTO probe VALUES ('written')")
        cursor.execute("SELECT word FROM probe")
        found = cursor.fetchone()[0]
        cursor.execute("DROP TEMPORARY TABLE probe")
    if found != "written":
        raise DatabaseError("the database did not return what it was given")


def write_disks():
    # The container's own layer, and the database's disk if that is a different one.
    places = {os.stat(place).st_dev: place for place in (DATA, tempfile.gettempdir())}
    for place in places.values():
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            written = file.write(BLOCK)
            if written != len(BLOCK):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())


def search():
    return SearchQuerySet().filter(content="larkmoor").count()


@transaction.non_atomic_requests
def healthz(request):
    """Answers 200 with the counts, or 503 with the failed step and the reason."""
    started, answer = time.monotonic(), {"ok": False}
    steps = [("products", read_database), ("search", search), ("database_write", write_database), ("disk_write", write_disks)]
    for name, step in steps:
        try:
            result = step()
        except Exception as error:  # noqa: BLE001 - whatever is wrong is the answer
            reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
            return JsonResponse({**answer, "failed": name, "reason": reason or type(error).__name__}, status=503)
        answer[name] = True if result is None else result
        if result == 0:
            return JsonResponse({**answer, "failed": name, "reason": f"no {name} found"}, status=503)
    answer["ok"], answer["milliseconds"] = True, round((time.monotonic() - started) * 1000, 1)
    return JsonResponse(answer)
