"""A site handler for webarena-verified, which has the protocol `SiteInstanceHandler` and no implementation of it."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _program
from ._client import Arena
from ._errors import ArenadError
from .types import Site

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext
    from webarena_verified.types.environment import SiteInstanceCommandResult

Result = TypeVar("Result")

TRIES = 0.5
"""Seconds between two attempts of `verify`."""


class ArenadSiteHandler:
    """One site of arenad as webarena-verified handles sites: `ArenadSiteHandler("shopping")`.

    Methods raise `RuntimeError`, as the protocol says; its `__cause__` is the client's `ArenadError` or `TimeoutError`.
    `timeout` is the limit for one operation, in seconds. `account` is needed only if several accounts of the site can
    sign in.
    """

    def __init__(
        self,
        site: str,
        *,
        arena: Arena | None = None,
        environment: str | None = None,
        account: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.site = site
        self._arena = arena or Arena(environment=environment)
        self._environment = environment or self._arena._environment
        self._account = account
        self._timeout = timeout

    @property
    def url(self) -> str:
        """The URL of the site at its public port."""
        return self._named()["url"]

    def exec_cmd(
        self,
        cmd: list[str],
        input_data: str | None = None,
        capture_output: bool = True,
        text: bool = True,
        check: bool = False,
        **kwargs: Any,
    ) -> SiteInstanceCommandResult:
        """Runs a command in the container of the site, on the daemon's machine. `service` names the container of a site
        that has several; other arguments are those of `subprocess.run`.

        The next reset of the site creates new containers, because nothing is known about what the command changed.
        """
        from webarena_verified.types.environment import SiteInstanceCommandResult

        service = kwargs.pop("service", None)
        words = ["exec", self.site, *([] if service is None else ["--service", service])]
        if self._environment is not None:
            words += ["--environment", self._environment]
        address, token = self._arena._given
        given = {"ARENAD_HOST": address, "ARENAD_TOKEN": token}
        environment = {**os.environ, **{name: value for name, value in given.items() if value}}
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input_data is None else {"input": input_data.encode()}
        ran = self._done(
            lambda: subprocess.run(
                [_program.find(), *words, "--", *cmd],
                env=environment,
                stdout=subprocess.PIPE if capture_output else None,
                stderr=subprocess.PIPE if capture_output else None,
                **source,
                **kwargs,
            )
        )
        # The program announces on a line of its own that the site is entered.
        _, _, said = (ran.stderr or b"").decode(errors="replace").partition("\n")
        out = (ran.stdout or b"").decode(errors="replace")
        if check and ran.returncode != 0:
            raise RuntimeError(f"{cmd} exited with code {ran.returncode} in {self.site}: {said.strip()}")
        return SiteInstanceCommandResult(stdout=out, stderr=said, returncode=ran.returncode)

    def stop(self) -> None:
        """Takes the site down. Its state is lost."""
        # The environment, whose definition `start` needs, is known while the site is up.
        self._named()
        self._done(lambda: self._arena.down(self.site, environment=self._environment))

    def start(self) -> str:
        """Brings the site up from its baseline, and returns its URL. A site that is up is reset."""
        if any(site["name"] == self.site for site in self._done(self._sites)):
            self.reset()
        else:
            self._done(lambda: self._arena.up(self.site, environment=self._environment, timeout=self._timeout))
        self.init()
        return self.url

    def init(self, *, url: str | None = None) -> None:
        """Checks that the site was configured for an address: the configuration is part of its baseline."""
        own = self.url
        if url is not None and url.rstrip("/") != own.rstrip("/"):
            raise RuntimeError(f"{self.site} was configured for {own}, not for {url}; set `host` and `public.port` in arenad")

    def reset(self) -> None:
        """Brings the site back to its baseline, and returns when this is proven."""
        self._done(lambda: self._arena.reset(self.site, environment=self._environment, timeout=self._timeout))

    def verify(self) -> None:
        """Waits until the site is ready and answers."""
        deadline = time.monotonic() + self._timeout
        while True:
            site = self._named()
            told = site["reason"] or site["state"]
            if site["state"] == "ready":
                try:
                    with urllib.request.urlopen(site["url"], timeout=60):
                        return
                except urllib.error.HTTPError as error:
                    with error:
                        if error.code < 500:
                            return
                    told = str(error)
                except OSError as error:
                    told = str(error)
            if time.monotonic() >= deadline:
                raise RuntimeError(f"{self.site} is not ready: {told}")
            time.sleep(TRIES)

    def login(self, context: BrowserContext) -> dict[str, str] | None:
        """Signs a browser context in by the cookies of a session. Returns the headers of an account that signs in with
        headers, else `None`."""
        session = self._done(lambda: self._arena.login(self.site, self._account, environment=self._environment))
        if session["cookies"]:
            context.add_cookies(session["cookies"])  # type: ignore[arg-type]
        return session["headers"] or None

    def _sites(self) -> list[Site]:
        wanted = self._environment
        found = self._arena.status()["environments"]
        return [site for known in found if wanted in (None, known["name"]) for site in known["sites"]]

    def _named(self) -> Site:
        found = [site for site in self._done(self._sites) if site["name"] == self.site]
        if len(found) != 1:
            what = "several environments that are up have" if found else "no environment that is up has"
            raise RuntimeError(f"{what} a site {self.site}")
        self._environment = found[0]["environment"]
        return found[0]

    def _done(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except (ArenadError, TimeoutError) as error:
            raise RuntimeError(f"{self.site}: {error}") from error
