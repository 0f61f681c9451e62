"""A pytest plug-in: one episode for each test, with pristine sites.

The fixtures are `arenad_client`, of the session, and `episode`, of one test. The marker `arenad` and the options of the
ini file say which sites the episode has. If the environment fails an episode, its test counts as an error and not as a
failure, whatever the test itself found.

    @pytest.mark.arenad(sites=["shopping"])
    def test_the_basket_is_empty(episode, page):
        page.goto(episode.urls["shopping"] + "/basket/")

For pytest-playwright, a `conftest.py` sends the browser through the episode's proxy:

    @pytest.fixture
    def browser_context_args(browser_context_args, episode):
        return {**browser_context_args, "proxy": episode.proxy}
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from ._client import Arena
from ._episode import Episode
from ._errors import ArenadError, EpisodeEnded

TOLD_WITHIN = 2.0
"""Seconds for which the report of a failed test waits for the news that a container has died."""

_EPISODE = pytest.StashKey[Episode]()

_ARGUMENTS = ("sites", "task", "snapshots", "slots", "timeout", "ttl", "owner", "labels", "record", "environment")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("arenad_host", "address of the daemon: unix:///path or http://host:port (default: ARENAD_HOST)")
    parser.addini("arenad_environment", "environment of the episodes, needed only if several that are up have the sites")
    parser.addini("arenad_sites", "sites of the episodes of tests whose marker names none (default: all)", type="args")
    parser.addini("arenad_timeout", "seconds that a test waits for its sites (default: 600)", default="600")
    parser.addini("arenad_owner", "owner that the episodes are counted for")


def pytest_configure(config: pytest.Config) -> None:
    line = "arenad(sites=…, task=…, snapshots=…, record=…): the arguments of the test's episode, as of Client.episode"
    config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def arenad_client(pytestconfig: pytest.Config) -> Iterator[Arena]:
    """The client of the daemon, for the whole session."""
    address = str(pytestconfig.getini("arenad_host")) or None
    environment = str(pytestconfig.getini("arenad_environment")) or None
    with Arena(address, environment=environment) as client:
        yield client


@pytest.fixture
def episode(request: pytest.FixtureRequest, arenad_client: Arena) -> Iterator[Episode]:
    """An episode of this test alone. It ends with the test, and the sites go back to their baselines."""
    started = arenad_client.episode(**_arguments(request))
    request.node.stash[_EPISODE] = started
    yield started
    try:
        started.end()
    except EpisodeEnded:
        # The report of the test has told an end that was too early, and removed the episode.
        if _EPISODE in request.node.stash:
            raise


def _arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns the arguments of the episode: those of the ini file, then those of the markers, the closest one last."""
    config = request.config
    arguments: dict[str, Any] = {"timeout": float(config.getini("arenad_timeout"))}
    if config.getini("arenad_owner"):
        arguments["owner"] = str(config.getini("arenad_owner"))
    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("arenad"))):
        unknown = sorted(set(marker.kwargs) - set(_ARGUMENTS))
        if marker.args or unknown:
            what = f"unknown argument {unknown[0]!r}" if unknown else f"argument {marker.args[0]!r} without a name"
            pytest.fail(f"marker arenad of this test: {what}; expected {', '.join(_ARGUMENTS)}", pytrace=False)
        given |= marker.kwargs
    if "sites" not in given and "task" not in given and config.getini("arenad_sites"):
        arguments["sites"] = list(config.getini("arenad_sites"))
    return arguments | given


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    episode = item.stash.get(_EPISODE, None)
    if episode is None or call.when != "call":
        return report
    report.sections.append(("arenad", _described(episode)))
    told = _end_told(episode, TOLD_WITHIN if report.failed else 0.0)
    if told is None:
        return report
    del item.stash[_EPISODE]
    # Only reports of the set-up and the tear-down count as errors, in the terminal and in JUnit's XML. A test whose sites
    # were taken from it has found nothing, whether it passed or not.
    if report.longreprtext:
        report.sections.append(("the test itself", report.longreprtext))
    report.when = "setup"
    report.outcome = "failed"
    report.longrepr = pytest.ExceptionInfo.from_exception(told).getrepr(style="value")
    return report


def _end_told(episode: Episode, within: float) -> EpisodeEnded | None:
    """Returns how an episode ended before the end of its test, unless the test ended it."""
    if episode._is_ended:
        return None
    try:
        episode.confirm(within)
    except EpisodeEnded as told:
        return told
    except ArenadError:
        # The daemon does not answer; the tear-down says so.
        return None
    return None


def _described(episode: Episode) -> str:
    slots = ", ".join(str(site["instance"] or site["site"]) for site in episode.sites)
    return f"episode {episode.id} on {slots}"
