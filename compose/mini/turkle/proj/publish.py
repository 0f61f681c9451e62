"""Publishes folders of tasks in the layout of TurkingBench: a project for each folder, a batch for each of its CSV files.

    publish FOLDER...          for signed-in workers
    publish --open FOLDER...   for everybody, as TurkingBench does

A folder holds template.html and batch.csv, or other folders that do. Where there is no batch.csv, every CSV file is a
batch with the file's name.
Columns named `Answer.` are the expected answers: they stay here, and rows that differ in nothing else are one task. A row
whose `WorkerId` is an account has been done by that worker, with these answers. A project that exists is left alone.
"""

import argparse
import csv
import io
import re
import sys
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


class Refused(Exception):
    """A folder cannot be published; the message gives the folder and the reason."""


class Publisher:
    """Uses Turkle's own REST API within this process: its checks apply, and the clock stands still."""

    def __init__(self, is_open):
        self.is_open, self.api = is_open, APIClient()
        self.api.force_authenticate(User.objects.get(username="admin"))

    def create(self, what, about, **fields):
        answer = self.api.post(f"/api/{what}/", {**fields, "login_required": not self.is_open}, format="json")
        if answer.status_code != 201:
            raise Refused(f"{about}: Turkle refuses it: {answer.content.decode()}")
        return answer.json()["id"]

    def folder(self, folder):
        """Publishes the projects in a folder and returns a line of output for each."""
        if not folder.is_dir():
            raise Refused(f"{folder}: no such folder")
        if (folder / "template.html").is_file():
            return [self.project(folder)]
        return [self.project(template.parent) for template in sorted(folder.glob("*/template.html"))] or [f"{folder}: no tasks"]

    def project(self, folder):
        template = folder / "template.html"
        if Project.objects.filter(name=folder.name).exists():
            return f"{folder.name}: exists already, left as it is"
        html = text_of(template)
        project = self.create("projects", template, name=folder.name, filename=template.name, html_template=html)
        counts = [self.batch(project, table, html) for table in tables(folder)]
        return f"{folder.name}: {counted(len(counts), 'batch', 'batches')}, {counted(sum(counts), 'task', 'tasks')}{warning(html)}"

    def batch(self, project, table, html):
        inputs, responses = read(table, html)
        text = io.StringIO()
        csv.writer(text).writerows([inputs, *responses])
        name = table.parent.name if table.name == "batch.csv" else table.stem
        batch = self.create("batches", table, name=name, project=project, filename=table.name, csv_text=text.getvalue())
        tasks = Task.objects.filter(batch=batch).order_by("id")
        if len(tasks) != len(responses):
            raise Refused(f"{table}: {len(responses)} different rows, but Turkle made {len(tasks)} tasks of them")
        for task, rows in zip(tasks, responses.values()):
            for row in rows:
                worker = User.objects.filter(username=row.get(WORKER) or None).first()
                if worker:
                    TaskAssignment.objects.create(task=task, assigned_to=worker, completed=True, answers=answers(row))
        return len(tasks)


def text_of(file):
    try:
        # TurkingBench writes some of its files with a byte order mark.
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{file}: byte {error.start} is not UTF-8") from None


def tables(folder):
    found = [folder / "batch.csv"] if (folder / "batch.csv").is_file() else sorted(folder.glob("*.csv"))
    if not found:
        raise Refused(f"{folder}: there is no CSV file")
    return found


def read(table, html):
    """Returns the input columns, and the rows of the table by the values of these columns, in the order of the file."""
    reader = csv.DictReader(io.StringIO(text_of(table), newline=""), restkey="", restval=None)
    rows = list(reader)
    if not rows:
        raise Refused(f"{table}: there are no rows")
    wanted = set(re.findall(r"\${(\w+)}", html))
    inputs = [name for name in reader.fieldnames if not name.startswith(ANSWER) and (name != WORKER or name in wanted)]
    responses = {}
    for number, row in enumerate(rows, 1):
        if "" in row or None in row.values():
            raise Refused(f"{table}: row {number} does not have the {len(reader.fieldnames)} cells of the header")
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
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    publisher = Publisher(options.open)
    try:
        # One transaction for all projects lets the command be repeated after a failure.
        with transaction.atomic():
            said = [line for folder in options.folders for line in publisher.folder(folder)]
    except Refused as refused:
        sys.exit(f"publish: {refused}")
    print("\n".join(said))


main()
