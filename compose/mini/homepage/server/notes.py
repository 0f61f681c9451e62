"""The notes of the scratchpad. Each request opens its own connection, so that the file is not open when a rewind exchanges
it."""

import contextlib
import datetime as dt
import sqlite3

DATABASE = "/data/homepage.sqlite3"
SCHEMA = """CREATE TABLE note (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    created TEXT NOT NULL,
    changed TEXT NOT NULL
)"""
SEED = [
    ("Welcome", "Notes that you write here stay until the scratchpad is reset."),
    ("Packing list", "rain jacket\nboots\nferry ticket\ncamera"),
    ("Ask the museum of clocks", "Is it open on Tuesdays?\nWhat does a ticket cost?"),
]
# The format of stored times.
FORM = "%Y-%m-%dT%H:%M:%SZ"
SEEDED_AT = "2023-06-01T12:00:00Z"


@contextlib.contextmanager
def database():
    connection = sqlite3.connect(DATABASE, timeout=10)
    connection.row_factory = sqlite3.Row
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def now():
    return dt.datetime.now(dt.timezone.utc).strftime(FORM)


def all():
    with database() as connection:
        return [dict(row) for row in connection.execute("SELECT * FROM note ORDER BY id")]


def save(note, title, text):
    """Changes the note with this number, or creates one if there is none."""
    with database() as connection:
        changed = connection.execute("UPDATE note SET title = ?, text = ?, changed = ? WHERE id = ?", (title, text, now(), note))
        if changed.rowcount == 0:
            connection.execute("INSERT INTO note (title, text, created, changed) VALUES (?, ?, ?, ?)", (title, text, now(), now()))


def delete(note):
    with database() as connection:
        connection.execute("DELETE FROM note WHERE id = ?", (note,))


def seed():
    with database() as connection:
        connection.execute(SCHEMA)
        rows = [(title, text, SEEDED_AT, SEEDED_AT) for title, text in SEED]
        connection.executemany("INSERT INTO note (title, text, created, changed) VALUES (?, ?, ?, ?)", rows)


if __name__ == "__main__":
    seed()
