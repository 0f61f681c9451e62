"""Calls the command line for work with files of this machine: bringing environments up, and listing their tasks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import ArenadError

CODES = {1: "failed", 2: "usage", 4: "busy", 124: "timed_out", 130: "interrupted"}
"""The meanings of the program's exit codes."""


def find() -> str:
    """Returns the path of the program: the value of ARENAD_BIN, else `arenad` on the path."""
    given = os.environ.get("ARENAD_BIN") or shutil.which("arenad")
    if not given:
        hint = "install it, or set ARENAD_BIN to its path"
        raise ArenadError("the program arenad is not on the path", code="no_program", hint=hint)
    return given


def run(words: Sequence[str], address: str | None, token: str | None, variables: Mapping[str, str] | None = None) -> Any:
    """Runs a command with `--json` and returns its output, or `None` if it prints nothing."""
    environment = {**os.environ, **(variables or {})}
    if address:
        environment["ARENAD_HOST"] = address
    if token:
        environment["ARENAD_TOKEN"] = token
    ran = subprocess.run([find(), *words, "--json"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode != 0:
        raise _failure(ran.returncode, ran.stderr)
    return json.loads(ran.stdout) if ran.stdout.strip() else None


def _failure(code: int, said: str) -> ArenadError:
    word = CODES.get(code, "failed")
    for line in reversed(said.splitlines()):
        try:
            told = json.loads(line)
            detail = ": ".join([told["error"], *told.get("causes", [])])
            return ArenadError(detail, code=word, hint=told.get("hint"))
        except (ValueError, KeyError, TypeError):
            continue
    return ArenadError(said.strip() or f"arenad exited with code {code}", code=word)
