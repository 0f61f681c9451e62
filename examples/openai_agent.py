"""An agent on any endpoint that speaks OpenAI's chat completions, with a native task from its start to its verdict.

    arenad up mini turkle
    OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=… python examples/openai_agent.py turkle.left.1

The model sees the page as an accessibility tree, and acts by calling tools. OPENAI_API_KEY is sent if it is set.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

from arenad import Client, Episode, EpisodeVoid
from playwright.sync_api import Browser, Error, Page, sync_playwright

STEPS = 20
TREE = 12_000
"""The number of characters of a page that the model sees."""

PROMPT = """You use a web site for a person. Act by calling one tool at a time; after each call you see the page as an
accessibility tree. When the task is done, or cannot be done, call `answer`; leave `text` empty if no answer was asked for."""

TEXT = {"type": "string"}


def tool(name: str, description: str, **fields: dict[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("click", "Clicks an element by its role and its name, such as link and Sign in.", role=TEXT, name=TEXT),
    tool("fill", "Replaces the text of a field by its label.", label=TEXT, text=TEXT),
    tool("goto", "Opens an address, or a path of the present site.", url=TEXT),
    tool("back", "Goes back to the page before."),
    tool("answer", "Ends the task.", text=TEXT),
]


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the model's next message."""
    body = {"model": os.environ.get("OPENAI_MODEL", "default"), "messages": messages, "tools": TOOLS, "temperature": 0}
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def act(page: Page, name: str, given: dict[str, str]) -> str:
    """Performs a call, and returns what the model sees then."""
    try:
        if name == "click":
            page.get_by_role(given["role"], name=given["name"]).first.click(timeout=5000)  # type: ignore[arg-type]
        elif name == "fill":
            page.get_by_label(given["label"]).first.fill(given["text"], timeout=5000)
        elif name == "goto":
            page.goto(given["url"])
        elif name == "back":
            page.go_back()
        else:
            return f"There is no tool {name}."
        page.wait_for_load_state()
    except (Error, KeyError) as error:
        return f"That failed: {str(error).splitlines()[0]}\n\n{seen(page)}"
    return seen(page)


def seen(page: Page) -> str:
    return f"{page.title()} ({page.url})\n{page.locator('body').aria_snapshot()[:TREE]}"


def solve(episode: Episode, browser: Browser) -> tuple[str, str]:
    """Returns the model's answer and the address of its last page."""
    begun = episode.begin()
    start = begun["start"]
    context = browser.new_context(proxy=episode.proxy, base_url=start)
    for site, account in begun["accounts"].items():
        context.add_cookies(episode.login(site, account)["cookies"])  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(start)
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"{begun['intent']}\n\n{seen(page)}"}]
    for _ in range(STEPS):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return message.get("content") or "", page.url
        for call in calls:
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")
            if name == "answer":
                return given.get("text", ""), page.url
            print(f"  {name} {' '.join(given.values())}")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": act(page, name, given)})
    return "", page.url


def main(task: str) -> None:
    with sync_playwright() as playwright, Client() as client:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        try:
            with client.episode(task=task, timeout=600) as episode:
                answer, url = solve(episode, browser)
                judged = episode.evaluate(answer=answer, url=url)
        except EpisodeVoid as void:
            sys.exit(f"the environment failed, so repeat it: {void.reason}")
    print(f"{task}: {judged['verdict']} with the answer {answer!r}, reward {judged['reward']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "turkle.left.1")
