"""Publishes folders of tasks in the layout of TurkingBench: a project for each folder, a batch for each of its CSV files.

    publish FOLDER...          for signed-in workers
    publish --open FOLDER...   for everybody, as TurkingBench does
    publish --open --archive   the folders of a tar archive on standard input

A folder holds template.html and input.csv or batch.csv, or other folders that do. Where there is neither table, every CSV
file is a batch with the file's name.
Columns named `Answer.` are the expected answers: they stay here, and rows that differ in nothing else are one task. A row
whose `WorkerId` is an account has been done by that worker, with these answers. An input.csv has one row for each task,
and a file workers.txt beside it the accounts to which the tasks are assigned in turn. A project that exists is left alone.
"""

import argparse
import csv
import io
import re
import sys
import tarfile
from pathlib import Path

import clock

clock.stop()

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402
from turkle.models import Project, Task, TaskAssignment  # noqa: E402

ANSWER, WORKER = "Answer.", "WorkerId"
# The tables that are a batch with the name of their folder; the first one that is there counts.
NAMED = ["input.csv", "batch.csv"]
WORKERS = "workers.txt"


class Refused(Exception):
    """A folder cannot be published; the message gives the folder and the reason."""


class Folder:
    """The files of one project by name, from a folder or from an archive."""

    def __init__(self, place, files):
        self.place, self.name, self.files = place, place.name, files

    def text(self, name):
        try:
            # TurkingBench writes some of its files with a byte order mark.
            return self.files[name].decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Refused(f"{self.place / name}: byte {error.start} is not UTF-8") from None

    def tables(self):
        named = [name for name in NAMED if name in self.files][:1]
        found = named or sorted(name for name in self.files if name.endswith(".csv"))
        if not found:
            raise Refused(f"{self.place}: there is no CSV file")
        return found

    def workers(self):
        names = self.text(WORKERS).split() if WORKERS in self.files else []
        accounts = {user.username: user for user in User.objects.filter(username__in=names)}
        for name in names:
            if name not in accounts:
                raise Refused(f"{self.place / WORKERS}: there is no account {name}")
        return [accounts[name] for name in names]


class Publisher:
    """Uses Turkle's own REST API within this process: its checks apply, and the clock stands still."""

    def __init__(self, is_open):
        self.is_open, self.api = is_open, APIClient()
        self.api.force_authenticate(User.objects.get(username="admin"))

    def create(self, what, about, is_open, **fields):
        answer = self.api.post(f"/api/{what}/", {**fields, "login_required": not is_open}, format="json")
        if answer.status_code != 201:
            raise Refused(f"{about}: Turkle refuses it: {answer.content.decode()}")
        return answer.json()["id"]

    def project(self, folder):
        """Publishes a project and returns a line of output."""
        if Project.objects.filter(name=folder.name).exists():
            return f"{folder.name}: exists already, left as it is"
        html, workers = folder.text("template.html"), folder.workers()
        # A task that is assigned to a worker is closed to visitors without an account.
        is_open = self.is_open and not workers
        project = self.create("projects", folder.place / "template.html", is_open, name=folder.name, filename="template.html",
                              html_template=html)
        counts = [self.batch(project, folder, table, html, is_open, workers) for table in folder.tables()]
        return f"{folder.name}: {counted(len(counts), 'batch', 'batches')}, {counted(sum(counts), 'task', 'tasks')}{warning(html)}"

    def batch(self, project, folder, table, html, is_open, workers):
        place = folder.place / table
        inputs, responses = read(place, folder.text(table), html)
        text = io.StringIO()
        # Turkle removes white space from the end of the text, which quotes keep out of the last cell.
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([inputs, *responses])
        name = folder.name if table in NAMED else Path(table).stem
        batch = self.create("batches", place, is_open, name=name, project=project, filename=table, csv_text=text.getvalue())
        tasks = Task.objects.filter(batch=batch).order_by("id")
        if len(tasks) != len(responses):
            raise Refused(f"{place}: {len(responses)} different rows, but Turkle made {len(tasks)} tasks of them")
        for task, rows in zip(tasks, responses.values()):
            for row in rows:
                worker = User.objects.filter(username=row.get(WORKER) or None).first()
                if worker and table != "input.csv":
                    TaskAssignment.objects.create(task=task, assigned_to=worker, completed=True, answers=answers(row))
        for number, task in enumerate(tasks if workers else []):
            TaskAssignment.objects.create(task=task, assigned_to=workers[number % len(workers)], answers={})
        return len(tasks)


def folders(place):
    """Returns the projects in a folder: the folder itself, or those below it."""
    if not place.is_dir():
        raise Refused(f"{place}: no such folder")
    inner = [place] if (place / "template.html").is_file() else [file.parent for file in sorted(place.glob("*/template.html"))]
    return [Folder(found, {file.name: file.read_bytes() for file in sorted(found.iterdir()) if file.is_file()}) for found in inner]


def archived(stream):
    """Returns the projects in an archive, in its order."""
    found = {}
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            place = Path(entry.name)
            if entry.isfile() and len(place.parts) == 2:
                found.setdefault(place.parent, {})[place.name] = archive.extractfile(entry).read()
    return [Folder(place, files) for place, files in found.items() if "template.html" in files]


def read(place, text, html):
    """Returns the input columns, and the rows of the table by the values of these columns, in the order of the file."""
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval=None)
    rows = list(reader)
    if not rows:
        raise Refused(f"{place}: there are no rows")
    wanted = set(re.findall(r"\${(\w+)}", html))
    inputs = [name for name in reader.fieldnames if not name.startswith(ANSWER) and (name != WORKER or name in wanted or place.name == "input.csv")]
    responses = {}
    for number, row in enumerate(rows, 1):
        if "" in row or None in row.values():
            raise Refused(f"{place}: row {number} does not have the {len(reader.fieldnames)} cells of the header")
        responses.setdefault(tuple(row[name] for name in inputs), []).append(row)
    return inputs, responses


def answers(row):
    """Returns the data that a form would have sent: several values as a list, one value as text."""
    given = {name.removeprefix(ANSWER): value.split("|") for name, value in row.items() if name.startswith(ANSWER)}
    return {name: values if len(values) > 1 else values[0] for name, values in given.items()}


def counted(number, one, several):
    return f"{number} {one if number == 1 else several}"


def warning(html):
    hosts = sorted(set(re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//([^/"'\s>]+)""", html)))
    return f"\n  its pages ask these hosts, which cannot be reached from a browser without Internet: {', '.join(hosts)}" if hosts else ""


def main():
    parser = argparse.ArgumentParser(prog="publish", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", action="store_true", help="workers need not sign in")
    parser.add_argument("--archive", action="store_true", help="read the folders from a tar archive on standard input")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if bool(options.folders) == options.archive:
        parser.error("name folders, or pass --archive")
    publisher = Publisher(options.open)
    try:
        # One transaction for all projects lets the command be repeated after a failure.
        with transaction.atomic():
            found = archived(sys.stdin.buffer) if options.archive else [one for place in options.folders for one in folders(place)]
            said = [publisher.project(folder) for folder in found] or ["no tasks"]
    except Refused as refused:
        sys.exit(f"publish: {refused}")
    print("\n".join(said))


main()
