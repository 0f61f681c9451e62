"""The names of environments and sites in calls, and the paths of the API that they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from ._errors import ArenadError
from ._transport import Transport
from .types import Environment, Site, Status


class Names:
    """Finds the environment and the site that a call means."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        environment: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._transport = Transport(address, token, timeout)
        self._given = (address, token)
        self._environment = environment

    def status(self) -> Status:
        """Returns all sites that are up, with their states."""
        status: Status = self._transport.request("GET", "/v1/status")
        return status

    def sites(self, *, environment: str | None = None) -> list[Site]:
        """Returns the sites that are up, of all environments or of one."""
        return [site for found in self._environments(environment) for site in found["sites"]]

    def _environments(self, environment: str | None) -> list[Environment]:
        """Returns the named environment, or all that are up."""
        wanted = environment or self._environment
        up = self.status()["environments"]
        found = [known for known in up if wanted is None or known["name"] == wanted]
        if not found:
            what = "nothing is up" if wanted is None else f"environment `{wanted}` is not up"
            raise ArenadError(what, code="unknown_environment", hint=_up([known["name"] for known in up]))
        return found

    def _chosen(self, sites: tuple[str, ...], environment: str | None) -> dict[str, list[str]]:
        """Returns the named sites by environment; without names, the only possible environment with an empty list."""
        environments = self._environments(environment)
        if not sites:
            if len(environments) > 1:
                names = ", ".join(known["name"] for known in environments)
                raise ambiguous(f"several environments are up: {names}")
            return {environments[0]["name"]: []}
        chosen: dict[str, list[str]] = {}
        for name in sites:
            site = self._one([site for known in environments for site in known["sites"]], name)
            chosen.setdefault(site["environment"], []).append(name)
        return chosen

    def _one(self, sites: list[Site], name: str) -> Site:
        """Returns the site with this name."""
        found = [site for site in sites if site["name"] == name]
        if not found:
            hint = _up([site["name"] for site in sites])
            raise ArenadError(f"site `{name}` is not up", code="unknown_site", hint=hint)
        if len(found) > 1:
            raise ambiguous(f"`{name}` is a site of {' and '.join(site['environment'] for site in found)}")
        return found[0]

    def _site(self, site: str, environment: str | None) -> str:
        wanted = environment or self._environment
        if wanted is None:
            # A slot, such as `shopping:2`, belongs to its site.
            wanted = self._one(self.sites(), site.partition(":")[0])["environment"]
        return f"{path_of(wanted)}/sites/{quote(site, safe='')}"

    def _found(self, environment: str | None) -> str:
        """Returns the path prefix of a task's environment; without a name, the daemon finds the environment by the task."""
        wanted = environment or self._environment
        return "/v1" if wanted is None else path_of(wanted)


def path_of(environment: str) -> str:
    return f"/v1/environments/{quote(environment, safe='')}"


def _up(names: Iterable[str]) -> str:
    """Returns the hint for a name that is not up."""
    known = ", ".join(names)
    return f"name one that is up: {known}" if known else "`arenad up` brings sites up"


def ambiguous(detail: str) -> ArenadError:
    return ArenadError(detail, code="which_environment", hint="name one with environment=, in the call or for the Arena")
