"""Every operation of the API is sent by a method of the client, or is listed here with the reason why it is not.

The operations are those of the OpenAPI document, which is generated from the daemon's router.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, is_typeddict
from urllib.parse import parse_qs, urlsplit

from arenad import Arena, ArenadError, AsyncArena, AsyncEpisode, Episode, types
from scripted import Reply, ScriptedDaemon, episode, started

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "schemas/openapi.json"

WITHOUT_METHOD = {
    "GET /v1/openapi.json": "describes the API for generators of clients",
    "PUT /v1/environments/{environment}": "`up` runs the program: the definition consists of files that it resolves",
    "POST /v1/environments/{environment}/down": "`down` runs the program, which also stops a daemon that `up` started",
    "POST /v1/environments/{environment}/sites/{site}/entries": "only the program runs commands in containers",
    "GET /v1/snapshots/{id}/export": "`arenad snapshot export` writes the file",
    "POST /v1/imports": "`arenad snapshot import` reads the file",
    "PUT /v1/imports/{id}/parts/{index}": "`arenad snapshot import` reads the file",
    "POST /v1/imports/{id}/finish": "`arenad snapshot import` reads the file",
    "PUT /v1/replays/{name}": "`arenad replay add` packs the recordings",
    "GET /v1/replays": "`arenad replay ls` lists them",
    "GET /v1/replays/{name}": "`arenad replay show` shows it",
    "DELETE /v1/replays/{name}": "`arenad replay rm` removes it",
    "GET /v1/certificates/replay": "`arenad ca` prints it",
    "POST /v1/checks": "`check` knows the environment in which the episode began, and names it",
    "POST /v1/shutdown": "ends the daemon for all of its clients, so it is left to its operator",
    "POST /v1/purge": "removes all snapshots, so it is left to the operator: `arenad down --purge`",
}

SITE = "/v1/environments/mini/sites/shop"
BEGUN: Any = {"task": "shop.order", "environment": "mini"}

CALLS: dict[str, Callable[[Arena], Any]] = {
    "GET /v1/version": lambda it: it.version(),
    "GET /v1/status": lambda it: it.status(),
    "GET /v1/health": lambda it: it.health("shop:2", limit=3),
    "GET /v1/environments/{environment}/har": lambda it: it.har("shop"),
    "POST /v1/environments/{environment}/resets": lambda it: it.reset("shop"),
    "POST /v1/environments/{environment}/checks": lambda it: it.check(BEGUN),
    "POST /v1/environments/{environment}/checks/begin": lambda it: it.begin("shop.order", environment="mini"),
    "POST /v1/environments/{environment}/evaluations": lambda it: it.evaluate("webarena", {}, environment="mini"),
    "POST /v1/checks/begin": lambda it: it.begin("shop.order"),
    "POST /v1/evaluations": lambda it: it.evaluate("webarena", {}),
    "GET /v1/environments/{environment}/sites/{site}/accounts": lambda it: it.accounts("shop"),
    "POST /v1/environments/{environment}/sites/{site}/accounts/{account}/login": lambda it: it.login("shop", "ann"),
    "POST /v1/environments/{environment}/sites/{site}/verify": lambda it: it.verify("shop"),
    "GET /v1/environments/{environment}/sites/{site}/changes": lambda it: it.changes("shop:2", values=True),
    "GET /v1/environments/{environment}/sites/{site}/looks": lambda it: it.looks("shop"),
    "POST /v1/environments/{environment}/sites/{site}/looks": lambda it: it.look("shop"),
    "POST /v1/environments/{environment}/sites/{site}/locate": lambda it: it.locate("shop", "http: /"),
    "GET /v1/environments/{environment}/sites/{site}/logs": lambda it: it.logs("shop", tail=3),
    "POST /v1/environments/{environment}/sites/{site}/snapshots": lambda it: it.take_snapshot("shop", "x"),
    "GET /v1/episodes": lambda it: it.episodes(),
    "POST /v1/episodes": lambda it: it.episode(["shop"], record="all", timeout=0),
    "GET /v1/episodes/queue": lambda it: it.queue(),
    "GET /v1/episodes/events": lambda it: next(it.episode_events()),
    "GET /v1/episodes/{id}": lambda it: it.find_episode("ep-1"),
    "DELETE /v1/episodes/{id}": lambda it: it.end_episode("ep-1"),
    "GET /v1/certificates/key": lambda it: it.certificate_key(),
    "GET /v1/df": lambda it: it.df(),
    "POST /v1/prune": lambda it: it.prune("snapshots", trial=True),
    "GET /v1/operations/{id}": lambda it: it.operation("op", wait=1),
    "GET /v1/resets/{id}": lambda it: it.find_reset("reset"),
    "GET /v1/snapshots": lambda it: it.snapshots(),
    "GET /v1/snapshots/{id}": lambda it: it.find_snapshot("x"),
    "DELETE /v1/snapshots/{id}": lambda it: it.remove_snapshot("x"),
    "GET /v1/snapshots/{id}/differences": lambda it: it.snapshot_differences("x", "y"),
    "GET /v1/events": lambda it: it.events(after=1),
}
"""By operation, a call that sends it."""

EPISODE_CALLS: dict[str, Callable[[Episode], Any]] = {
    "POST /v1/episodes/{id}/heartbeat": lambda it: it.extend(60),
    "POST /v1/episodes/{id}/freeze": lambda it: it.freeze(),
    "POST /v1/episodes/{id}/unfreeze": lambda it: it.unfreeze(),
    "POST /v1/episodes/{id}/fork": lambda it: it.fork(2, ttl=60, record="writes"),
    # The client holds each of its episodes, and does so again after a break.
    "GET /v1/episodes/{id}/hold": lambda it: None,
    "GET /v1/episodes/{id}/events": lambda it: next(it.events()),
    "POST /v1/episodes/{id}/evaluations/begin": lambda it: it.begin(),
    "POST /v1/episodes/{id}/evaluations": lambda it: it.evaluate(answer="5"),
    "GET /v1/episodes/{id}/changes": lambda it: it.changes(["shop"], values=True),
    "GET /v1/episodes/{id}/looks": lambda it: it.looks(),
    "POST /v1/episodes/{id}/looks": lambda it: it.look(),
    "GET /v1/episodes/{id}/storage-state/{site}": lambda it: it.storage_state("shop", "ann"),
    "POST /v1/episodes/{id}/login/{site}": lambda it: it.login("shop", "ann"),
    "POST /v1/episodes/{id}/locate/{site}": lambda it: it.locate("shop", "sql(shop): SELECT {id}", id=3),
    "GET /v1/episodes/{id}/har": lambda it: it.har(),
    "GET /v1/episodes/{id}/browser": lambda it: it.observe(),
    "POST /v1/episodes/{id}/observations": lambda it: it.add_step("http://shop.arena.test/", html="", text_content="$5"),
    "GET /v1/episodes/{id}/observations": lambda it: it.trajectory(),
    "GET /v1/episodes/{id}/browser/elements": lambda it: it.elements(),
    "GET /v1/episodes/{id}/browser/snapshot": lambda it: it.page_snapshot("#main"),
    "DELETE /v1/episodes/{id}/browser": lambda it: it.close_browser(),
    "POST /v1/episodes/{id}/browser/reset": lambda it: it.open_browser("http://shop.arena.test/", viewport=(800, 600), files={"a.txt": b"a"}, trajectory=True),
    "POST /v1/episodes/{id}/browser/step": lambda it: it.act("click [1]", selector="#cart"),
}


def operations() -> set[str]:
    """Returns the operations as `METHOD /path/{parameter}`."""
    paths = document()["paths"]
    return {f"{verb.upper()} {path}" for path, known in paths.items() for verb in known}


def document() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return parsed


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema that a reference leads to."""
    found = document()
    if "$ref" in schema:
        for word in schema["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        return found
    return schema


def pattern(operation: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", operation) + r"(\?.*)?")


class Operations(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = ScriptedDaemon()
        self.addCleanup(self.daemon.__exit__, None, None, None)
        site = {"environment": "mini", "name": "shop", "url": "http://localhost:1"}
        up = {"daemon": {}, "conditions": [], "environments": [{"name": "mini", "sites": [site]}]}
        self.daemon.script("GET", "/v1/status", Reply(200, up))

    def sent(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.daemon.requests]

    def test_every_operation_has_a_call_or_a_reason(self) -> None:
        known = operations()
        self.assertGreater(len(known), 50, "the operations were found")
        covered = [*WITHOUT_METHOD, *CALLS, *EPISODE_CALLS]
        self.assertEqual(sorted(set(covered)), sorted(covered), "each operation is listed once")
        self.assertEqual(known - set(covered), set(), "each operation has a call or a reason")
        self.assertEqual(set(covered) - known, set(), "no operation is listed that does not exist")

    def test_each_call_sends_its_operation(self) -> None:
        for operation, call in CALLS.items():
            try:
                call(Arena(self.daemon.address))
            except (ArenadError, StopIteration, KeyError, TypeError):
                pass  # the scripted daemon knows no answer
            self.assertTrue(any(pattern(operation).fullmatch(line) for line in self.sent()), operation)

    def test_each_call_of_an_episode_sends_its_operation(self) -> None:
        granted = Episode(Arena(self.daemon.address)._transport, started(state="active"))
        for operation, call in EPISODE_CALLS.items():
            try:
                call(granted)
            except (ArenadError, StopIteration, KeyError, TypeError):
                pass
            self.assertTrue(any(pattern(operation).fullmatch(line) for line in self.sent()), operation)
        granted.end()

    def test_each_request_has_only_parameters_and_fields_of_its_operation(self) -> None:
        granted = Episode(Arena(self.daemon.address)._transport, started(state="active"))
        calls = [(it, Arena(self.daemon.address), call) for it, call in CALLS.items()]
        calls += [(it, granted, call) for it, call in EPISODE_CALLS.items()]  # type: ignore[misc, list-item]
        checked = 0
        for operation, subject, call in calls:
            before = len(self.daemon.requests)
            try:
                call(subject)
            except (ArenadError, StopIteration, KeyError, TypeError):
                pass
            verb, path = operation.split()
            described = document()["paths"][path][verb.lower()]
            known = {each["name"] for each in described.get("parameters", []) if each["in"] == "query"}
            for method, sent, body, _ in self.daemon.requests[before:]:
                if not pattern(operation).fullmatch(f"{method} {sent}"):
                    continue
                self.assertLessEqual(set(parse_qs(urlsplit(sent).query)), known, operation)
                if body is not None:
                    schema = resolved(described["requestBody"]["content"]["application/json"]["schema"])
                    self.assertLessEqual(set(body), set(schema["properties"]), operation)
                    self.assertLessEqual(set(schema.get("required", [])), set(body), operation)
                    checked += 1
        self.assertGreaterEqual(checked, 15)
        granted.end()


class Types(unittest.TestCase):
    def test_the_fields_of_each_type_are_those_of_the_document(self) -> None:
        schemas = document()["components"]["schemas"]
        compared = 0
        for name, kind in inspect.getmembers(types, is_typeddict):
            known = schemas.get({"Site": "SiteStatus", "Environment": "EnvironmentStatus"}.get(name, name))
            if known is not None and "properties" in known:
                self.assertLessEqual(set(kind.__annotations__), set(known["properties"]), name)
                always = set(kind.__required_keys__)
                self.assertLessEqual(always, set(known.get("required", [])), f"{name}: fields that can be left out")
                compared += 1
        self.assertGreater(compared, 25)


class Asynchronous(unittest.TestCase):
    def test_both_forms_have_the_same_methods_with_documentation(self) -> None:
        def public(kind: type) -> set[str]:
            return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

        arena = AsyncArena("http://127.0.0.1:9")
        self.assertEqual(public(Arena) - {name for name in dir(arena) if not name.startswith("_")}, set())
        told = started(state="active")
        daemon = ScriptedDaemon()
        self.addCleanup(daemon.__exit__, None, None, None)
        sync = Episode(Arena(daemon.address)._transport, told)
        wrapped = AsyncEpisode(sync)
        self.assertEqual(public(Episode) - {name for name in dir(wrapped) if not name.startswith("_")}, set())
        self.assertEqual(wrapped.env, sync.env)
        asyncio.run(wrapped.end())
        for kind in (Arena, Episode):
            for name in public(kind):
                self.assertTrue(inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name} has no docstring")
        self.assertEqual(arena.locate.__doc__, Arena.locate.__doc__)


class Variables(unittest.TestCase):
    def test_they_are_those_of_arenad_run(self) -> None:
        daemon = ScriptedDaemon()
        self.addCleanup(daemon.__exit__, None, None, None)
        told = started(state="active")
        told["episode"] = episode(variables={"SHOPPING": "http://arena.test:7770"})
        told["episode"]["sites"][0] |= {"site": "shopping_admin", "port_url": "http://localhost:17780"}
        with Episode(Arena(daemon.address)._transport, told) as granted:
            self.assertEqual(
                granted.env,
                {
                    "SHOPPING": "http://arena.test:7770",
                    "ARENAD_EPISODE": "ep-1",
                    "ARENAD_EPISODE_TOKEN": "c0ffee",
                    "ARENAD_URL_SHOPPING_ADMIN": "http://shop.arena.test",
                    "ARENAD_PORT_URL_SHOPPING_ADMIN": "http://localhost:17780",
                    "ARENAD_PROXY_SERVER": "http://127.0.0.1:7500",
                    "ARENAD_PROXY_USERNAME": "ep-1",
                    "ARENAD_PROXY_PASSWORD": "c0ffee",
                    "ARENAD_PROXY_URL": "http://ep-1:c0ffee@127.0.0.1:7500",
                },
            )


if __name__ == "__main__":
    unittest.main()
