"""The deep probe: proves that the forum can read, search and write, and leaves nothing behind."""

import errno
import os
import tempfile
import time

from django.contrib.postgres.search import SearchQuery
from django.db import DatabaseError, connection, transaction
from django.http import JsonResponse
from misago.conf import settings
from misago.threads.models import Post, Thread

BLOCK = b"\0" * (1 << 20)
DATA = "/data"


def count_threads():
    return Thread.objects.filter(is_hidden=False).count()


def search():
    query = SearchQuery("larkmoor", config=settings.MISAGO_SEARCH_CONFIG)
    return Post.objects.filter(search_vector=query, is_hidden=False).count()


def write_database():
    # The transaction is rolled back; a temporary table would leave traces in the system's own tables.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE misago_cache_cacheversion SET version = version WHERE cache = 'settings'")
        written = cursor.rowcount
        transaction.set_rollback(True)
    if not written:
        raise DatabaseError("the database took no row")


def write_disks():
    # The container's own layer, and the database's disk if that is a different one.
    places = {os.stat(place).st_dev: place for place in (DATA, tempfile.gettempdir())}
    for place in places.values():
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            written = file.write(BLOCK)
            if written != len(BLOCK):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())


def healthz():
    """Answers 200 with the counts, or 503 with the failed step and the reason."""
    started, answer = time.monotonic(), {"ok": False}
    steps = [("threads", count_threads), ("search", search), ("database_write", write_database), ("disk_write", write_disks)]
    for name, step in steps:
        try:
            result = step()
        except Exception as error:  # noqa: BLE001 - whatever is wrong is the answer
            reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error).strip()
            return JsonResponse({**answer, "failed": name, "reason": reason or type(error).__name__}, status=503)
        answer[name] = True if result is None else result
        if result == 0:
            return JsonResponse({**answer, "failed": name, "reason": f"no {name} found"}, status=503)
    answer["ok"], answer["milliseconds"] = True, round((time.monotonic() - started) * 1000, 1)
    return JsonResponse(answer)


def first(get_response):
    """Answers before the rest of the request's processing, which would ask the database for the session."""

    def middleware(request):
        return healthz() if request.path == "/healthz" else get_response(request)

    return middleware
