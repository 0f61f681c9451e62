"""Runs `openenv validate` of the package `openenv` against a daemon's environment service.

Usage: validate.py URL PACKAGE PID, which prints the reports as JSON. PACKAGE is a folder with `openenv.yaml` and the
runtime plan, and PID the process of the daemon.

The command line validates the running service and the manifest. The checks of the level `runtime` usually build an image
and start it. Here they get a provider whose subject is the daemon that runs already.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from openenv.validation import Level, run_validation
from openenv.validation.types import ProviderCapability

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()"


class Daemon:
    """The running daemon, which the validator neither starts nor stops."""

    def __init__(self, url: str, pid: int) -> None:
        self.base_url = url
        self.pid = pid

    def inspect(self) -> dict[str, Any]:
        return {"pid": self.pid}

    def logs(self, max_bytes: int = 65536) -> str:
        return ""

    def stop(self) -> None:
        pass

    def measure_network(self) -> dict[str, Any]:
        """Connects to a sink from the daemon's network namespace, and lists what the namespace has."""
        own, theirs = os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{self.pid}/ns/net")
        enter = [] if own == theirs else ["nsenter", f"--net=/proc/{self.pid}/ns/net"]
        with socket.create_server(("127.0.0.1", 0)) as sink:
            connect = [sys.executable, "-c", CONNECT, *map(str, sink.getsockname())]

            def probe(enter: list[str]) -> dict[str, Any]:
                done = subprocess.run([*enter, *connect], capture_output=True, check=False)
                return {"result": "reachable" if done.returncode == 0 else "inconclusive"}

            probes = [{"kind": "tcp", "control": probe([]), "subject": probe(enter)}]

        def lines(name: str) -> list[list[str]]:
            file = Path(f"/proc/{self.pid}/net/{name}")
            return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

        return {
            "requested_mode": "public",
            "subject_network_mode": "host",
            "namespace": {
                "interfaces": [line[0].rstrip(":") for line in lines("dev")[2:]],
                "default_route": any(line[1] == "00000000" for line in lines("route")[1:]),
                "ipv6_non_loopback": sum(line[-1] != "lo" for line in lines("if_inet6")),
                "listening_ports": sorted({int(line[1].split(":")[1], 16) for line in lines("tcp")[1:] if line[3] == "0A"}),
            },
            "probes": probes,
        }


class DaemonProvider:
    """A provider whose image is built and whose subject runs."""

    name = "arenad"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD, ProviderCapability.NETWORK_POLICY})
    supported_network_modes = frozenset({"public"})

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def build(self, root: Path, execution: Any) -> str:
        return "sha256:" + "0" * 64

    def start(self, spec: Any) -> Daemon:
        return self.daemon


def command(*arguments: str) -> dict[str, Any]:
    """Runs `openenv validate` and returns its report."""
    program = Path(sys.executable).with_name("openenv")
    done = subprocess.run([program, "validate", *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"openenv validate {' '.join(arguments)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def main(url: str, package: str, pid: str) -> None:
    provider = DaemonProvider(Daemon(url, int(pid)))
    runtime = run_validation(Path(package), max_level=Level.SEMANTIC, provider=provider)
    reports = {
        "running": command("--url", url, "--timeout", "20"),
        "static": command(package, "--level", "static"),
        "runtime": runtime.model_dump(mode="json"),
    }
    print(json.dumps(reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
