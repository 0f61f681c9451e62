"""The deep probe: proves that Turkle can read, search and write, and leaves nothing behind."""

import errno
import os
import tempfile
import time

from django.db import connection, transaction
from django.http import JsonResponse

BLOCK = b"\0" * (1 << 20)
DATA = "/data"


def count(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]


def write_database():
    # Takes the write lock and creates the journal in /data; the rollback restores the file.
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE probe (word TEXT)")
            cursor.execute("INSERT INTO probe VALUES ('written')")
        transaction.set_rollback(True)


def write_disks():
    # The container's own layer, and the database's disk if that is a different one.
    places = {os.stat(place).st_dev: place for place in (DATA, tempfile.gettempdir())}
    for place in places.values():
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            written = file.write(BLOCK)
            if written != len(BLOCK):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())


STEPS = [
    ("projects", lambda: count("SELECT count(*) FROM turkle_project WHERE active")),
    ("tasks", lambda: count("SELECT count(*) FROM turkle_task")),
    ("search", lambda: count("SELECT count(*) FROM turkle_task WHERE input_csv_fields LIKE %s", "%museum%")),
    ("database_write", write_database),
    ("disk_write", write_disks),
]


def healthz(request):
    """Answers 200 with the counts, or 503 with the failed step and the reason."""
    started, answer = time.monotonic(), {"ok": False}
    for name, step in STEPS:
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
