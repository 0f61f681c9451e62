"""An agent on any endpoint that speaks OpenAI's chat completions, with a native task from its start to its verdict.

    arenad up mini turkle
    OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=… python examples/openai_agent.py turkle.left.1

The daemon drives the browser: the model sees the page as WebArena shows it, and acts by a tool. OPENAI_API_KEY is sent if
it is set.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

from arenad import Client, Episode, EpisodeVoid
from arenad.types import BrowserStep

STEPS = 20
TEXT = 24_000
"""The number of characters of a page that the model sees."""

PROMPT = """You use a web site for a person. You see each page as an accessibility tree in which elements have ids. Act by
calling `act`, one action at a time:
click [id], hover [id], type [id] [text] [1] (0 in place of 1: without Enter), press [Control+a], scroll [down],
select [id] [option], goto [url], go_back, new_tab, tab_focus [0], close_tab.
When the task is done, or cannot be done: stop [answer]. Leave the answer empty if none was asked for."""

ACTION = {"type": "string", "description": "One action, such as click [12]."}
SCHEMA = {"type": "object", "properties": {"action": ACTION}, "required": ["action"]}
TOOL = {"type": "function", "function": {"name": "act", "description": "Acts in the browser.", "parameters": SCHEMA}}


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the model's next message."""
    body = {"model": os.environ.get("OPENAI_MODEL", "default"), "messages": messages, "tools": [TOOL], "temperature": 0}
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def seen(step: BrowserStep) -> str:
    """Returns the text of a page for the model, after the reason why the last action failed."""
    error = step["error"]
    told = "" if error is None else f"That failed: {error['message']}\n\n"
    return f"{told}{step['url']}\n{step['observation']['text'][:TEXT]}"


def solve(episode: Episode) -> None:
    """Lets the model act until it stops."""
    begun = episode.begin()
    step = episode.open_browser(begun["start"], accounts=dict(begun["accounts"]))
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"{begun['intent']}\n\n{seen(step)}"}]
    for _ in range(STEPS):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            messages.append({"role": "user", "content": "Call `act`; to end the task, with stop [answer]."})
        for call in calls:
            action = json.loads(call["function"]["arguments"] or "{}").get("action", "")
            print(f"  {action}")
            step = episode.act(action)
            if step["done"]:
                return
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": seen(step)})


def main(task: str) -> None:
    with Client() as client:
        try:
            with client.episode(task=task, timeout=600) as episode:
                solve(episode)
                # The answer and the last page are those of the browser.
                judged = episode.evaluate()
        except EpisodeVoid as void:
            sys.exit(f"the environment failed, so repeat it: {void.reason}")
    print(f"{task}: {judged['verdict']}, reward {judged['reward']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "turkle.left.1")
