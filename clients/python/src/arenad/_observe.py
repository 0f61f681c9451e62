"""The client's methods that look at sites, episodes and the daemon without changing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from ._errors import ArenadError
from ._names import Names
from .types import (
    CertificateKey,
    EpisodeStateEvent,
    Event,
    ListedAccount,
    Look,
    Operation,
    QueuedRequest,
    ReportedEpisode,
    Reset,
    SiteChanges,
    SiteHealth,
    Snapshot,
    SnapshotDifferences,
    Version,
)


class Observation(Names):
    """The part of a client that only reads. `site` may be a slot, such as `shopping:2`, where a method says so."""

    def version(self) -> Version:
        """Returns the version of the daemon and of its API."""
        version: Version = self._transport.request("GET", "/v1/version")
        return version

    def health(self, site: str | None = None, *, limit: int | None = None, environment: str | None = None) -> list[SiteHealth]:
        """Returns the latest rounds of probes, of all sites or of one site or slot, at most `limit` rounds of each kind."""
        wanted = environment or self._environment
        query = {"environment": wanted, "site": site, "limit": limit}
        sites: list[SiteHealth] = self._transport.request("GET", f"/v1/health{_query(query)}")["sites"]
        return sites

    def accounts(self, site: str, *, environment: str | None = None) -> list[ListedAccount]:
        """Returns the accounts of a site, without their passwords. `login` is `None` for those that cannot sign in."""
        path = f"{self._site(site, environment)}/accounts"
        accounts: list[ListedAccount] = self._transport.request("GET", path)["accounts"]
        return accounts

    def logs(
        self,
        site: str,
        *,
        tail: int | None = None,
        since: int | None = None,
        service: str | None = None,
        timestamps: bool = False,
        environment: str | None = None,
    ) -> str:
        """Returns the logs of the containers of a site or slot: the last `tail` lines, or those since a time in seconds
        since 1970."""
        query = {"tail": tail, "since": since, "service": service, "timestamps": "true" if timestamps else None}
        return self._transport.text("GET", f"{self._site(site, environment)}/logs{_query(query)}")

    def changes(
        self,
        site: str,
        *,
        since: int | None = None,
        until: int | None = None,
        values: bool = False,
        environment: str | None = None,
    ) -> SiteChanges:
        """Returns the differences between a site or slot and its snapshot, with the rows of tables.

        `since` and `until` are numbers of looks that replace the snapshot and the present. With `values`, the rows have
        their values. `Episode.changes` is the same for an episode.
        """
        query = {"since": since, "until": until, "values": "true" if values else None}
        changes: SiteChanges = self._transport.request("GET", f"{self._site(site, environment)}/changes{_query(query)}")
        return changes

    def look(self, site: str, *, environment: str | None = None) -> int:
        """Keeps the state of a site or slot, and returns its number, for `since` and `until` of `changes`."""
        number: int = self._transport.request("POST", f"{self._site(site, environment)}/looks")["number"]
        return number

    def looks(self, site: str, *, environment: str | None = None) -> list[Look]:
        """Returns the kept states of a site or slot."""
        looks: list[Look] = self._transport.request("GET", f"{self._site(site, environment)}/looks")["looks"]
        return looks

    def episodes(
        self, *, owner: str | None = None, labels: Mapping[str, str] | None = None, live: bool = False
    ) -> list[ReportedEpisode]:
        """Returns episodes in the order of their requests, including those that ended recently unless `live` is set."""
        query = [("live", "true")] if live else []
        query += [("owner", owner)] if owner is not None else []
        query += [("label", f"{name}={value}") for name, value in (labels or {}).items()]
        episodes: list[ReportedEpisode] = self._transport.request("GET", f"/v1/episodes?{urlencode(query)}")["episodes"]
        return episodes

    def find_episode(self, id: str) -> ReportedEpisode:
        """Returns an episode by its id, also of another client and after its end."""
        episode: ReportedEpisode = self._transport.request("GET", _episode(id))
        return episode

    def end_episode(self, id: str) -> None:
        """Ends an episode of another client by its id, or withdraws its request. `Episode.end` ends one's own."""
        self._transport.request("DELETE", _episode(id))

    def episode_har(self, id: str) -> dict[str, Any]:
        """Returns the record of an episode as a HAR, also after its end if it was started with `record`."""
        har: dict[str, Any] = self._transport.request("GET", f"{_episode(id)}/har")
        return har

    def episode_events(self, *, after: int | None = None) -> Iterator[EpisodeStateEvent]:
        """Yields the states of all episodes, past and future, until the connection to the daemon ends."""
        stream = self._transport.stream(f"/v1/episodes/events{_query({'after': after})}")
        try:
            for _, event in stream:
                if "seq" not in event:
                    # The daemon keeps only a number of events.
                    raise ArenadError(event["message"], code="not_found")
                yield event
        finally:
            stream.close()

    def queue(self) -> list[QueuedRequest]:
        """Returns the requests for episodes that wait for slots, in the order of their arrival."""
        requests: list[QueuedRequest] = self._transport.request("GET", "/v1/episodes/queue")["requests"]
        return requests

    def snapshots(self, *, environment: str | None = None) -> list[Snapshot]:
        """Returns the snapshots of all environments or of one, newest first."""
        snapshots: list[Snapshot] = self._transport.request("GET", "/v1/snapshots")["snapshots"]
        wanted = environment or self._environment
        return [found for found in snapshots if wanted is None or found["environment"] == wanted]

    def find_snapshot(self, snapshot: str) -> Snapshot:
        """Returns a snapshot by its name, its id, or the beginning of its id."""
        found: Snapshot = self._transport.request("GET", _snapshot(snapshot))
        return found

    def snapshot_differences(self, before: str, now: str) -> SnapshotDifferences:
        """Returns the tables and files in which two snapshots of a site differ."""
        path = f"{_snapshot(now)}/differences{_query({'from': before})}"
        differences: SnapshotDifferences = self._transport.request("GET", path)
        return differences

    def operation(self, id: str, *, wait: float = 0.0) -> Operation:
        """Returns an operation by its id when it has ended, or after `wait` seconds."""
        operation: Operation = self._transport.request("GET", f"/v1/operations/{quote(id, safe='')}?wait={wait:.3f}")
        return operation

    def find_reset(self, id: str) -> Reset:
        """Returns a reset by its id, with its stages and what was compared."""
        reset: Reset = self._transport.request("GET", f"/v1/resets/{quote(id, safe='')}")
        return reset

    def events(self, *, after: int | None = None, limit: int = 100) -> list[Event]:
        """Returns events, oldest first: those after a sequence number, or the newest ones."""
        events: list[Event] = self._transport.request("GET", f"/v1/events{_query({'limit': limit, 'after': after})}")["events"]
        return events

    def certificate_key(self) -> CertificateKey:
        """Returns the public key that verifies the certificates of this installation."""
        key: CertificateKey = self._transport.request("GET", "/v1/certificates/key")
        return key

    def df(self) -> dict[str, Any]:
        """Returns the disk usage of snapshots, instances, images, archives and records, as `arenad df --json` does."""
        used: dict[str, Any] = self._transport.request("GET", "/v1/df")
        return used


def _query(fields: Mapping[str, object]) -> str:
    given = {name: str(value) for name, value in fields.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _episode(id: str) -> str:
    return f"/v1/episodes/{quote(id, safe='')}"


def _snapshot(name: str) -> str:
    return f"/v1/snapshots/{quote(name, safe='')}"
