"""Fixtures: a mini environment of the tests' own, with free ports and a state directory."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from arenad import Client

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 8
_GIVEN: set[int] = set()


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The client of a daemon with all sites of `mini`, each of which may have eight slots."""
    root = _definition(tmp_path_factory.mktemp("root"))
    # The path of a socket has at most 108 bytes.
    state = tmp_path_factory.mktemp("s")
    given = {
        "ARENAD_ROOT": str(root),
        "ARENAD_STATE_DIR": str(state),
        "ARENAD_SLOTS": str(SLOTS),
        "ARENAD_STORAGE": os.environ.get("ARENAD_STORAGE", "plain"),
        "ARENAD_PROXY": f"127.0.0.1:{_free_port()}",
        "ARENAD_COMPAT": "none",
        "ARENAD_OPENENV": f"127.0.0.1:{_free_port()}",
    }
    os.environ.update(given)
    os.environ.pop("ARENAD_HOST", None)
    found = Client(environment="mini")
    try:
        found.up(timeout=1200)
        yield found
    finally:
        installation = found.status()["daemon"]["installation"]
        found.down()
        _remove_snapshots(installation)


def _remove_snapshots(installation: str) -> None:
    """Removes the images of the snapshots alone: `arenad down --purge` would also remove the built images of `mini`."""
    labels = [f"label=dev.arenad.installation={installation}", "label=dev.arenad.role=snapshot"]
    filters = [word for label in labels for word in ("--filter", label)]
    listed = subprocess.run(["docker", "images", "-q", *filters], capture_output=True, text=True, check=True)
    if images := sorted(set(listed.stdout.split())):
        subprocess.run(["docker", "rmi", "-f", *images], check=True, stdout=subprocess.DEVNULL)


def _definition(root: Path) -> Path:
    """Copies the definition of `mini`, with other public ports."""
    shutil.copytree(ROOT / "compose", root / "compose", symlinks=True)
    shutil.copytree(ROOT / "environments", root / "environments", symlinks=True)
    files = [root / "environments/mini.yaml", root / "compose/mini.yaml"]
    ports = set(re.findall(r"public: \{ port: (\d+)", files[0].read_text()))
    assert len(ports) > 2, "the public ports are found"
    chosen = {port: str(_free_port()) for port in ports}
    for file in files:
        file.write_text(re.sub(rf"\b({'|'.join(ports)})\b", lambda found: chosen[found[1]], file.read_text()))
    return root


def _free_port() -> int:
    """Returns a port that is free and was not returned before."""
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port: int = listener.getsockname()[1]
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port


@pytest.fixture(autouse=True)
def sites_are_given_back(client: Client) -> Iterator[None]:
    """Each test ends its episodes."""
    yield
    assert client.episodes(live=True) == []
