"""Runs the OpenEnv taskset of verifiers against a daemon's environment service, with a scripted model.

Usage: rollouts.py URL FOLDER TASK REPLY..., where each REPLY is what the model says in a turn. Before the reply `wait`, the
model creates FOLDER/waiting and waits until the file is removed. `vf-eval` writes its files to FOLDER. Prints what
verifiers keeps of the rollout, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import tomli_w

PATIENCE = 120.0


class ScriptedModel(BaseHTTPRequestHandler):
    """A model server that streams one entry of the script after the other, and the last one from then on."""

    script: list[str]
    waiting: Path

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if reply == "wait":
            self.waiting.touch()
            deadline = time.monotonic() + PATIENCE
            while self.waiting.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices: list[dict[str, Any]] = [
            {"index": 0, "delta": {"role": "assistant", "content": reply}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        ]
        chunk = {"id": "script", "object": "chat.completion.chunk", "created": 0, "model": "script"}
        chunks = [chunk | {"choices": [choice]} for choice in choices] + [chunk | {"choices": [], "usage": usage}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for text in [*map(json.dumps, chunks), "[DONE]"]:
            self.wfile.write(f"data: {text}\n\n".encode())

    def log_message(self, *_: Any) -> None:
        pass


def main(url: str, folder: Path, task: str, script: list[str]) -> None:
    ScriptedModel.script, ScriptedModel.waiting = script, folder / "waiting"
    model = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    config = {
        "model": "script",
        "push": False,
        "output_dir": str(folder),
        "run": {"name": "run"},
        "client": {"type": "eval", "base_url": f"http://127.0.0.1:{model.server_port}/v1", "api_key_var": "SCRIPT_KEY"},
        "env": {
            "taskset": {"id": "openenv", "base_url": url, "resets": [{"task": task}]},
            "player": {"max_turns": 10, "harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "eval.toml"
    file.write_text(tomli_w.dumps(config))
    programs = Path(sys.executable).parent
    environment = os.environ | {"SCRIPT_KEY": "none", "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [programs / "vf-eval", "@", file, "--no-rich"]
    subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
    (episode,) = next(folder.rglob("traces.jsonl")).read_text().splitlines()
    print(episode)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
