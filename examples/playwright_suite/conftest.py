"""Sends the browser of each test through the proxy of its episode."""

import os

import pytest


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    program = os.environ.get("CHROMIUM")
    return {**browser_type_launch_args, **({"executable_path": program} if program else {})}


@pytest.fixture
def browser_context_args(browser_context_args, episode):
    (site,) = episode.urls
    return {**browser_context_args, "proxy": episode.proxy, "base_url": episode.urls[site]}
