"""Measures `full_reset()` of BrowserGym's package with all sites of `mini` up, and a standby of each ready before each reset.

    ARENAD_BIN=target/release/arenad PYTHONPATH=clients/python/src:tests/harnesses \\
        "$(scripts/harnesses.sh --full)" tests/harnesses/full_reset.py "$(scripts/harnesses.sh)" 20
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from arenad import Client
from mini import _definition, _free_port, _remove_snapshots

SCRIPT = Path(__file__).with_name("client.py")
PATIENCE = 60.0
"""Seconds after which a reset is measured without all standbys, and marked."""


def are_ready(client: Client) -> bool:
    (environment,) = client.status()["environments"]
    standbys = [site.get("standbys") or {"wanted": 0, "members": []} for site in environment["sites"]]
    ready = [[each for each in known["members"] if each["state"] in ("running", "frozen")] for known in standbys]
    return all(len(found) >= known["wanted"] for found, known in zip(ready, standbys))


def main(python: str, count: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="full-reset-"))
    root, port = _definition(folder / "root"), _free_port()
    file = root / "environments/mini.yaml"
    file.write_text(file.read_text().replace("\nsites:\n", f"\nreset_port: {port}\nsites:\n", 1))
    (folder / "s").mkdir()
    given = {"ARENAD_ROOT": str(root), "ARENAD_STATE_DIR": str(folder / "s"), "ARENAD_PROXY": "none"}
    os.environ.update({**given, "ARENAD_COMPAT": f"127.0.0.1:{port}"})
    client, times = Client(environment="mini"), []
    try:
        client.up(timeout=1200)
        words = [os.environ["ARENAD_BIN"], "env", "mini", "--for", "browsergym", "--format", "dotenv"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        variables = {**os.environ, **dict(line.split("=", 1) for line in printed.splitlines()), "NO_PROXY": "*"}
        for number in range(count):
            deadline = time.monotonic() + PATIENCE
            while not (is_ready := are_ready(client)) and time.monotonic() < deadline:
                time.sleep(0.2)
            ran = subprocess.run([python, str(SCRIPT), "browsergym"], env=variables, capture_output=True, text=True, check=True)
            told = json.loads(ran.stdout)
            assert told["raised"] is None, told
            print(f"{number}: {told['seconds']:.2f} s{'' if is_ready else ', not all standbys were ready'}", flush=True)
            times += [told["seconds"]] if is_ready else []
    finally:
        installation = client.status()["daemon"]["installation"]
        client.down()
        _remove_snapshots(installation)
    print(f"{len(times)} resets: p50 {median(times):.2f} s, from {min(times):.2f} to {max(times):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
