"""Episodes for harnesses that run agents in sandboxes: how they start, and how programs in the sandbox reach the sites."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from ._async import in_own_thread
from ._client import Arena
from ._episode import Episode, EpisodeRequest
from ._errors import ArenadError
from .types import Recording

T = TypeVar("T")

HERE = "localhost,127.0.0.1,::1"
"""The value of `NO_PROXY`: requests of a sandbox to itself."""


def request(
    client: Arena,
    *,
    sites: tuple[str, ...] = (),
    task: str | None = None,
    timeout: float = 3600.0,
    owner: str | None = None,
    labels: dict[str, str] | None = None,
    record: Recording | None = None,
    environment: str | None = None,
) -> EpisodeRequest:
    """Returns the request for an episode, with the arguments of `Client.episode`."""
    wanted = () if task is not None else sites
    return client._episode_request(wanted, task, None, None, timeout, None, owner, labels, record, None, environment)


async def started(asked: EpisodeRequest) -> Episode:
    """Waits for an episode. If the task is cancelled meanwhile, the request is withdrawn.

    Cancellation: safe; the episode ends, or never starts.
    """
    try:
        return await in_own_thread(asked.start)
    except BaseException:
        behind(asked.withdraw)
        raise


async def done(work: Callable[[], T]) -> T:
    """Runs a call of the client in a thread."""
    return await in_own_thread(work)


def variables(episode: Episode, proxy_host: str | None, is_container: bool, proxy_env: bool = True) -> dict[str, str]:
    """Returns the variables of a sandbox: those of `Episode.env` without the token, with addresses that hold through the
    episode proxy, and `http_proxy` if `proxy_env` is true.

    `proxy_host` is the name of the daemon's machine in the sandbox. Raises `ArenadError` if the daemon offers no proxy, or
    one that the network of a container cannot reach.
    """
    proxy = episode.proxy
    if proxy is None:
        hint = "start the daemon with --proxy; `arenad status` says why there is none"
        raise ArenadError("the daemon offers no episode proxy, by which sandboxes reach their episode", code="no_proxy", hint=hint)
    server = urlsplit(proxy["server"])
    if proxy_host is not None:
        server = server._replace(netloc=f"{proxy_host}:{server.port}")
    elif is_container and _is_loopback(server.hostname or ""):
        detail = f"containers do not reach the episode proxy at {proxy['server']}, which is an address of this machine alone"
        hint = "give the containers the network of the host (network_mode: host), and set proxy_host to 127.0.0.1"
        raise ArenadError(detail, code="proxy_unreachable", hint=hint)
    credentials = f"{quote(proxy['username'], safe='')}:{quote(proxy['password'], safe='')}"
    url = server._replace(netloc=f"{credentials}@{server.netloc}").geturl()
    found = {name: value for name, value in episode.env.items() if name != "ARENAD_EPISODE_TOKEN"}
    found = at_proxy(found, episode)
    found |= {"ARENAD_PROXY_SERVER": server.geturl(), "ARENAD_PROXY_URL": url}
    if proxy_env:
        found |= {"http_proxy": url, "HTTP_PROXY": url, "no_proxy": HERE, "NO_PROXY": HERE}
    return found


def at_proxy(given: Mapping[str, str], episode: Episode) -> dict[str, str]:
    """Returns variables whose addresses of sites hold through the episode proxy and are the same in every episode:
    `http://arena.test:PORT` for a site with a public port, and else `http://SITE.arena.test`."""
    found = dict(given)
    hosts = {urlsplit(site["url"]).netloc for site in episode.sites if site["url"] is not None}
    for name, value in found.items():
        parts = urlsplit(value)
        if parts.netloc in hosts:
            found[name] = parts._replace(netloc=f"arena.test:{parts.port or 80}").geturl()
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def behind(work: Callable[[], Any]) -> None:
    """Runs a call in a thread, without waiting for it."""
    threading.Thread(target=work, daemon=True).start()
