"""Three native tasks by a scripted agent in Chromium, with their verdicts, their changes and their traffic. `make demo`
runs it.

    arenad up mini turkle homepage shopping && python examples/demo.py --headed

Each task has an episode with pristine sites. The screenshots of all steps, a trace for Playwright's viewer, the HAR and
the verdict of each task go to a folder, whose name is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arenad import Client, Episode, EpisodeVoid
from playwright.sync_api import Browser, Page, sync_playwright

ATTEMPTS = 3
"""The number of episodes for one task if the environment fails them."""

Script = Callable[[Page, Callable[[str], None]], str]
"""Acts on a page, tells what it does, and returns the answer."""


def count_tasks(page: Page, tell: Callable[[str], None]) -> str:
    row = page.get_by_role("row").filter(has_text="Reviews of April 2023")
    row.scroll_into_view_if_needed()
    tell("reads the row of the batch")
    return row.get_by_role("cell").nth(3).inner_text()


def write_note(page: Page, tell: Callable[[str], None]) -> str:
    page.get_by_role("main").get_by_role("link", name="Scratchpad").click()
    tell("opens the scratchpad")
    page.get_by_label("Title").fill("Tide table")
    page.get_by_label("Text").fill("High water at Port Elsing is at ten past six.")
    tell("writes the note")
    page.get_by_role("button", name="Save note").click()
    page.locator("#notes").get_by_text("Tide table").wait_for()
    tell("saves it")
    return ""


def fill_basket(page: Page, tell: Callable[[str], None]) -> str:
    product = "Ashby Cycles Tailwind Gravel Pannier, Copper"
    page.locator("input[name=q]").first.fill(product)
    page.locator("input[name=q]").first.press("Enter")
    page.wait_for_url("**/search/**")
    tell("searches the shop")
    page.get_by_role("link", name=product).last.click()
    tell("opens the product")
    page.get_by_role("button", name="Add to basket").first.click()
    page.get_by_text("has been added to your basket").wait_for()
    tell("puts it into the basket")
    return ""


TASKS: dict[str, Script] = {
    "turkle.left.1": count_tasks,
    "homepage.note.1": write_note,
    "shopping.basket.2": fill_basket,
}


@contextmanager
def page_of(episode: Episode, browser: Browser, begun: Any, folder: Path) -> Iterator[Page]:
    """Yields a page of a browser that is signed in, and keeps a trace of it."""
    context = browser.new_context(proxy=episode.proxy, viewport={"width": 1280, "height": 800})
    context.tracing.start(screenshots=True, snapshots=True)
    try:
        for site, account in begun["accounts"].items():
            context.add_cookies(episode.login(site, account)["cookies"])  # type: ignore[arg-type]
        yield context.new_page()
    finally:
        context.tracing.stop(path=folder / "trace.zip")
        context.close()


def solve(episode: Episode, browser: Browser, script: Script, folder: Path) -> float | None:
    """Does the task of an episode, prints what happens, and returns the reward."""
    begun = episode.begin()
    print(f"  “{begun['intent']}”")
    slots = ", ".join(f"{site['site']}:{site['slot']}" for site in episode.sites)
    print(f"  episode    {episode.id} on {slots}")
    shots = 0

    with page_of(episode, browser, begun, folder) as page:

        def tell(step: str) -> None:
            nonlocal shots
            shots += 1
            page.screenshot(path=folder / f"{shots:02}.png")
            print(f"  agent      {step}")

        page.goto(begun["start"])
        tell("opens the start page")
        answer = script(page, tell)
        url = page.url
    judged = episode.evaluate(answer=answer, url=url)
    print(f"  verdict    {judged['verdict']}, reward {judged['reward']}" + (f", with the answer {answer}" if answer else ""))
    (folder / "verdict.json").write_text(json.dumps(judged, indent=2))
    print(f"  changes    {changed(episode)}")
    (folder / "traffic.har").write_text(json.dumps(episode.har()))
    print(f"  HAR        {folder / 'traffic.har'}")
    return judged["reward"]


def changed(episode: Episode) -> str:
    """Returns the changes of an episode in one line."""
    found = []
    for site in episode.changes()["sites"]:
        for store in site["stores"]:
            for table in store["tables"]:
                rows = table["rows"] or {"added": 0, "changed": 0, "removed": 0}
                counts = [f"{rows[kind]} {kind}" for kind in ("added", "changed", "removed") if rows[kind]]  # type: ignore[literal-required]
                found.append(f"{site['site']} {table['name']}: {', '.join(counts)}")
            found += [f"{site['site']} {file['path']} {file['change']}" for file in store["files"]]
    return "; ".join(found) or "none"


def attempt(client: Client, browser: Browser, task: str, folder: Path) -> float | None:
    """Returns the reward of a task. Repeats it if the environment fails."""
    for number in range(1, ATTEMPTS + 1):
        try:
            with client.episode(task=task, timeout=600, record="all", labels={"demo": folder.parent.name}) as episode:
                return solve(episode, browser, TASKS[task], folder)
        except EpisodeVoid as void:
            print(f"  void       {void.reason}")
            if number == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def main() -> None:
    parser = argparse.ArgumentParser(description="Three tasks of mini by a scripted agent.")
    parser.add_argument("--headed", action="store_true", help="show the browser, and act slowly")
    parser.add_argument("--out", type=Path, default=Path("target/demo"), help="folder for the records (default: target/demo)")
    given = parser.parse_args()
    folder = (given.out / time.strftime("%Y%m%d-%H%M%S")).absolute()
    rewards = []
    with sync_playwright() as playwright, Client() as client:
        launched = {"executable_path": os.environ.get("CHROMIUM"), "headless": not given.headed}
        browser = playwright.chromium.launch(**launched, slow_mo=600 if given.headed else 0)  # type: ignore[arg-type]
        for number, task in enumerate(TASKS, 1):
            print(f"{number}/{len(TASKS)} {task}")
            made = folder / task
            made.mkdir(parents=True)
            rewards.append(attempt(client, browser, task, made))
    print(f"Screenshots, traces, verdicts and HARs: {folder}")
    print(f"To look at a trace: playwright show-trace {folder}/{next(iter(TASKS))}/trace.zip")
    if rewards != [1.0] * len(TASKS):
        sys.exit(f"the rewards are {rewards}: a site has changed, or the script no longer fits it")


if __name__ == "__main__":
    main()
