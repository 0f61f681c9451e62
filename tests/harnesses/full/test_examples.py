"""Runs the examples as their first lines say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from arenad import Client
from site_agent import id_of

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
RECORDED = Path(__file__).with_name("recorded.json")


def run(*words: str, **variables: str) -> str:
    """Runs a program, which must succeed, and returns its output."""
    given = {**os.environ, **variables}
    done = subprocess.run([sys.executable, *words], cwd=EXAMPLES, env=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_scripted_agent_passes_in_forty_lines(client: Client):
    assert run("scripted_agent.py") == "turkle.left.1: passed with the answer 7, reward 1.0\n"
    assert len((EXAMPLES / "scripted_agent.py").read_text().splitlines()) <= 40


def test_the_group_of_rollouts_has_one_that_is_better(client: Client):
    told = run("group_rollout.py")
    assert told == "rewards [0.0, 0.0, 0.0, 1.0], advantages [-0.25, -0.25, -0.25, 0.75]\n"


def test_the_suite_of_playwright_has_an_episode_for_each_test(client: Client):
    known = len(client.episodes())
    told = run("-m", "pytest", "-q", "-p", "arenad.pytest_plugin", "-p", "no:cacheprovider", "playwright_suite")
    assert told.splitlines()[-1].startswith("4 passed"), told
    assert len(client.episodes()) == known + 4
    assert os.listdir(EXAMPLES / "playwright_suite").count("test-results") == 0


RUN_NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        done = shell.run_cell("".join(cell["source"]))
        done.raise_error()
        if done.result is not None:
            print("->", done.result)
"""


def test_the_cells_of_the_notebook_run_in_their_order(client: Client):
    known = {episode["id"] for episode in client.episodes()}
    told = run("-c", RUN_NOTEBOOK, "episode.ipynb")
    shown = [line.removeprefix("-> ") for line in told.splitlines() if line.startswith("-> ")]
    assert "What did I pay in total for my order number 100284" in shown[1]
    assert shown[2].startswith("<IPython.core.display.Image"), shown
    assert "/accounts/" in shown[3] and shown[3].endswith("None)"), shown
    assert shown[4:6] == ["2276.88", "('passed', 1.0)"], shown
    assert "shopping" in shown[6], shown
    assert "link 'My Account'" in told
    (own,) = [episode for episode in client.episodes() if episode["id"] not in known]
    assert own["state"] not in ("active", "granting"), own


class RecordedModel(HTTPServer):
    """An endpoint of chat completions that gives recorded messages in their order, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = json.loads(RECORDED.read_text())
        super().__init__(("127.0.0.1", 0), RecordedHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class RecordedHandler(BaseHTTPRequestHandler):
    server: RecordedModel

    def do_POST(self) -> None:
        assert self.path == "/v1/chat/completions"
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        message = self.server.answers[len(self.server.asked) - 1]
        said = [message["content"] or "" for message in self.server.asked[-1]["messages"]]
        page = [text for text in said if "RootWebArea" in text][-1]
        # The ids of elements differ from run to run, so that the record names the elements.
        for call in message.get("tool_calls", []):
            given = call["function"]["arguments"]
            call["function"]["arguments"] = re.sub(r"\{([a-z]+ '[^']+')\}", lambda found: id_of(page, found[1]), given)
        text = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


def test_an_agent_on_an_endpoint_of_openai_writes_a_note(client: Client):
    model = RecordedModel()
    try:
        told = run("openai_agent.py", "homepage.note.1", OPENAI_BASE_URL=model.url, OPENAI_MODEL="recorded", OPENAI_API_KEY="k")
    finally:
        model.shutdown()
    assert told.splitlines()[-1] == "homepage.note.1: passed, reward 1.0", told
    assert len(model.asked) == len(model.answers)
    first, last = model.asked[0], model.asked[-1]
    assert first["model"] == "recorded" and first["tools"][0]["function"]["name"] == "act"
    assert "Tide table" in first["messages"][1]["content"] and "link 'Scratchpad'" in first["messages"][1]["content"]
    # An action that fails is told to the model, and the page with the saved note is what it sees last.
    tools = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert tools[0].startswith("That failed: '99999'") and "Tide table" in tools[-1]


def test_the_demo_does_three_tasks_and_leaves_what_one_shows(client: Client, tmp_path: Path):
    words = [str(ROOT / "scripts/demo.sh"), "--out", str(tmp_path)]
    done = subprocess.run(words, env={**os.environ, "DEMO_PYTHON": sys.executable}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout
    assert told.count("verdict    passed, reward 1.0") == 3, told
    assert "with the answer 7" in told and "homepage note: 1 added" in told, told
    (folder,) = tmp_path.iterdir()
    assert str(folder) in told
    for task, shots in (("turkle.left.1", 2), ("homepage.note.1", 4), ("shopping.basket.2", 4)):
        made = folder / task
        assert f"HAR        {made / 'traffic.har'}" in told
        assert len(list(made.glob("*.png"))) == shots
        assert json.loads((made / "traffic.har").read_text())["log"]["entries"]
        assert json.loads((made / "verdict.json").read_text())["certificate"]
        assert "trace.trace" in zipfile.ZipFile(made / "trace.zip").namelist()
