"""A scripted agent on a native task of mini: it reads a number from a page, answers, and is judged.

    arenad up mini turkle && python examples/scripted_agent.py
"""

import os
import sys

from arenad import Client, Episode, EpisodeVoid
from playwright.sync_api import Browser, sync_playwright

TASK = "turkle.left.1"


def act(episode: Episode, browser: Browser) -> tuple[str, str]:
    """Returns the agent's answer and the address of its last page."""
    begun = episode.begin()
    context = browser.new_context(proxy=episode.proxy)
    for site, account in begun["accounts"].items():
        context.add_cookies(episode.login(site, account)["cookies"])
    page = context.new_page()
    page.goto(begun["start"])
    row = page.get_by_role("row").filter(has_text="Reviews of April 2023")
    return row.get_by_role("cell").nth(3).inner_text(), page.url


def main() -> None:
    with sync_playwright() as playwright, Client() as client:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        try:
            with client.episode(task=TASK, timeout=600) as episode:
                answer, url = act(episode, browser)
                judged = episode.evaluate(answer=answer, url=url)
        except EpisodeVoid as void:
            sys.exit(f"the environment failed, so repeat it: {void.reason}")
        print(f"{TASK}: {judged['verdict']} with the answer {answer}, reward {judged['reward']}")


if __name__ == "__main__":
    main()
