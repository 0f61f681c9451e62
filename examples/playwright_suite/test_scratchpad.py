"""A suite of pytest-playwright in which each test has pristine sites of its own, so that tests may write.

    arenad up mini homepage
    pip install pytest-playwright "arenad[pytest]"
    pytest examples/playwright_suite
"""

import pytest
from playwright.sync_api import Page, expect


def test_a_note_is_kept(page: Page) -> None:
    write(page, "Buy a lamp")
    page.locator("#notes > li").filter(has_text="Untitled").get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Text")).to_have_value("Buy a lamp")


def test_notes_of_other_tests_are_not_there(page: Page) -> None:
    page.goto("/scratchpad.html")
    expect(page.locator("#notes")).not_to_contain_text("Untitled")


def test_a_note_changes_one_row_of_the_database(page: Page, episode) -> None:
    write(page, "Buy a lamp")
    (site,) = episode.changes()["sites"]
    rows = {table["name"]: table["rows_now"] - table["rows_before"] for store in site["stores"] for table in store["tables"]}
    assert sum(rows.values()) == 1, rows


@pytest.mark.arenad(sites=["turkle"])
def test_another_site(page: Page) -> None:
    page.goto("/login/")
    expect(page.get_by_label("Username")).to_be_visible()


def write(page: Page, text: str) -> None:
    page.goto("/scratchpad.html")
    page.get_by_label("Text").fill(text)
    page.get_by_role("button", name="Save note").click()
    expect(page.locator("#notes")).to_contain_text("Untitled")
