"""The actions in a sandbox, and on an episode, that the tests of both harnesses share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from arenad import Client, Episode

ROOT = Path(__file__).resolve().parents[3]

FETCH = """
proxy=${ARENAD_PROXY_SERVER#http://} rest=${ARENAD_START#http://}
exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}"
printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\nProxy-Authorization: Basic %s\\r\\nConnection: close\\r\\n\\r\\n' "$ARENAD_START" \
    "${rest%%/*}" "$(printf %s "$ARENAD_PROXY_USERNAME:$ARENAD_PROXY_PASSWORD" | base64 -w0)" >&3
read -r _ status _ <&3
echo "$status ${http_proxy:-none} ${ARENAD_EPISODE:-none} ${ARENAD_EPISODE_TOKEN:-none}"
"""
"""A script for bash, in images without other tools: prints the status of the start page and some variables."""

ANSWERS = {"turkle.left.1": "7", "turkle.left.2": "14", "turkle.finished": "wrong"}


def assert_fetched(told: str, episode: Episode) -> None:
    """The sandbox has reached its own episode, and does not know the token."""
    status, proxy, id, token = told.split()
    assert int(status) < 400, told
    assert (id, token) == (episode.id, "none")
    assert proxy.startswith("http://") and "@" in proxy


def kill_containers(client: Client, episode: Episode) -> None:
    """Kills the containers of an episode's only site, and waits until the client knows."""
    (given,) = episode.sites
    (site,) = [site for site in client.sites() if site["name"] == given["site"]]
    slots = site["slots"] or [{"number": given["slot"], "containers": site["containers"]}]  # type: ignore[typeddict-item]
    for slot in slots:
        if slot["number"] == given["slot"]:
            for container in slot["containers"]:
                subprocess.run(["docker", "kill", container["id"]], check=True, stdout=subprocess.DEVNULL)
    assert episode._hold.ends_within(20) is not None


def base_image() -> str:
    """Returns the image that the sites of `mini` are built from."""
    dotenv = ROOT / "compose/.env"
    lines = dotenv.read_text().splitlines() if dotenv.exists() else []
    return next((line.partition("=")[2] for line in lines if line.startswith("BASE_IMAGE=")), "debian:bookworm-slim")


def _has_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0


needs_compose = pytest.mark.skipif(not _has_compose(), reason="needs Docker Compose 2: docker compose version")
