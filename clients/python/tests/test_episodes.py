"""Tests episodes against a daemon whose answers are scripted."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripted import PATIENCE, Line, Reply, ScriptedDaemon, ending, episode, started

from arenad import Arena, ArenadError, AsyncArena, Episode, EpisodeEnded, EpisodeVoid, NoSlot, Unreachable

EPISODES = "/v1/episodes"
ONE = "/v1/episodes/ep-1"


def until(is_reached: Callable[[], Any], what: str) -> Any:
    """Waits for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not (found := is_reached()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not reached in time: {what}")
        time.sleep(0.01)
    return found


class ScriptedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = ScriptedDaemon()
        self.addCleanup(self.daemon.__exit__)
        self.arena = Arena(self.daemon.address)

    def begin(self, **options: Any) -> tuple[Episode, Line]:
        """Returns an active episode, and the line that holds it."""
        self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
        found = self.arena.episode(["shop"], **options)
        line = self.daemon.line()
        line.tell(episode())
        return found, line

    def tell_end(self, line: Line, found: Episode, told: dict[str, Any]) -> None:
        """Ends the episode from the daemon's side."""
        line.tell(episode(state=told["state"], ending=told))
        self.daemon.script("DELETE", ONE, Reply.problem(410, "void", told))
        until(lambda: found.reported["ending"], "the end is told")


class Starting(ScriptedTest):
    def test_it_waits_for_its_slots_and_ends_with_the_block(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(202, started()))

        def grant() -> None:
            line = self.daemon.line()
            for state in ("queued", "preparing", "active"):
                time.sleep(0.05)
                line.tell(episode(state=state))

        granting = threading.Thread(target=grant)
        granting.start()
        with self.arena.episode(["shop"], timeout=90, owner="ann", labels={"run": "7"}, snapshots={"shop": "full"}) as found:
            self.assertEqual((found.id, found.state, found.is_proxied), ("ep-1", "active", True))
            self.assertEqual(found.urls, {"shop": "http://shop.arena.test"})
            self.assertEqual(found.proxy, {"server": "http://127.0.0.1:7500", "username": "ep-1", "password": "c0ffee"})
            self.assertEqual(found.proxy_url, "http://ep-1:c0ffee@127.0.0.1:7500")
            self.assertNotIn("c0ffee", repr(found))
            self.assertEqual(self.daemon.asked("DELETE", ONE), [])
        granting.join()
        self.assertEqual(len(self.daemon.asked("DELETE", ONE)), 1)
        ((body, headers),) = self.daemon.asked("POST", EPISODES)
        self.assertEqual((body["sites"], body["owner"], body["labels"]), (["shop"], "ann", {"run": "7"}))
        self.assertEqual((body["wait_seconds"], body["snapshots"], body["hold"]), (90, {"shop": "full"}, True))
        self.assertTrue(headers["idempotency-key"])

    def test_public_urls_are_used_if_all_sites_have_one(self) -> None:
        found, line = self.begin()
        site = {**episode()["sites"][0], "url": "http://localhost:7770"}
        line.tell(episode(sites=[site]))
        until(lambda: not found.is_proxied, "the new state")
        self.assertEqual(found.urls, {"shop": "http://localhost:7770"})
        line.tell(episode(sites=[site, {**site, "site": "forum", "url": None, "proxy_url": "http://forum.arena.test"}]))
        until(lambda: found.is_proxied, "the new state")
        self.assertEqual(found.urls, {"shop": "http://shop.arena.test", "forum": "http://forum.arena.test"})
        found.end()

    def test_the_requests_to_record_are_named(self) -> None:
        for record in ("all", "writes", "none", None):
            self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
            self.arena.episode(["shop"], record=record).end()
            body, _ = self.daemon.asked("POST", EPISODES)[-1]
            # Daemons that record no episodes do not know the key.
            self.assertEqual(body.get("record", "left out"), record or "left out")

        async def start() -> None:
            self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
            async with AsyncArena(self.daemon.address).episode(["shop"], record="writes"):
                pass

        asyncio.run(start())
        self.assertEqual(self.daemon.asked("POST", EPISODES)[-1][0]["record"], "writes")

    def test_clients_without_a_proxy_get_the_own_ports_of_slots(self) -> None:
        found, line = self.begin()
        self.assertEqual((found.port_urls, found.port_variables), ({}, {}), "an older daemon")
        shop = {**episode()["sites"][0], "port_url": "http://localhost:17781"}
        wiki = {**shop, "site": "wiki", "slot": None, "port_url": None, "url": "http://localhost:8888"}
        forum = {**shop, "site": "forum", "port_url": None}
        variables = {"SHOPPING": "http://localhost:17781"}
        line.tell(episode(sites=[shop, wiki, forum], port_variables=variables))
        until(lambda: found.port_variables, "the new state")
        self.assertEqual(found.port_urls, {"shop": "http://localhost:17781", "wiki": "http://localhost:8888"})
        self.assertEqual(found.port_variables, variables)
        found.end()

    def test_a_lost_answer_is_asked_for_again_with_the_same_key_and_body(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(None), Reply(200, started(state="active")))
        self.arena.episode(["shop"]).end()
        (first, one), (second, two) = self.daemon.asked("POST", EPISODES)
        self.assertEqual(first, second)
        self.assertEqual(one["idempotency-key"], two["idempotency-key"])

    def test_an_answer_that_breaks_off_before_it_begins_is_asked_for_again(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(202, b""), Reply(201, started(state="active")))
        self.arena.episode(["shop"]).end()
        self.assertEqual(len(self.daemon.asked("POST", EPISODES)), 2)

    def test_a_full_queue_is_tried_again_when_the_daemon_says(self) -> None:
        full = Reply.problem(429, "queue_full", Retry_After="1")
        self.daemon.script("POST", EPISODES, full, Reply(201, started(state="active")))
        begun = time.monotonic()
        self.arena.episode(["shop"], timeout=30).end()
        self.assertGreaterEqual(time.monotonic() - begun, 1.0)
        first, second = self.daemon.asked("POST", EPISODES)
        self.assertLess(second[0]["wait_seconds"], first[0]["wait_seconds"])

    def test_a_full_queue_is_an_error_if_the_time_does_not_suffice(self) -> None:
        self.daemon.script("POST", EPISODES, Reply.problem(429, "queue_full", Retry_After="7"))
        with self.assertRaises(ArenadError) as caught:
            self.arena.episode(["shop"], timeout=3)
        self.assertEqual((caught.exception.code, caught.exception.retry_after), ("queue_full", 7.0))
        self.assertEqual(len(self.daemon.asked("POST", EPISODES)), 1)

    def test_without_a_slot_in_time_the_error_says_so(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(202, started()))
        told = ending("expired", "wait")
        threading.Thread(target=lambda: self.daemon.line().tell(episode(state="expired", ending=told))).start()
        with self.assertRaises(NoSlot) as caught:
            self.arena.episode(["shop"], timeout=1)
        self.assertEqual((caught.exception.code, caught.exception.reason), ("no_slot", told["reason"]))

    def test_an_episode_that_another_client_holds_is_left_to_it(self) -> None:
        self.daemon.script("POST", EPISODES, Reply.problem(409, "already_held"))
        with self.assertRaises(ArenadError) as caught:
            self.arena.episode(["shop"], key="mine")
        self.assertEqual(caught.exception.code, "already_held")
        self.assertEqual(self.daemon.asked("DELETE", ONE), [])

    def test_one_name_instead_of_a_list_is_refused(self) -> None:
        with self.assertRaises(TypeError):
            self.arena.episode("shop")


class Living(ScriptedTest):
    def test_it_is_held_again_after_the_connection_broke(self) -> None:
        found, line = self.begin()
        self.daemon.script("GET", f"{ONE}/hold", Reply.problem(409, "already_held"), Reply.problem(503, "stopping"))
        line.cut()
        until(lambda: len(self.daemon.asked("GET", f"{ONE}/hold")) >= 3, "it is tried again")
        with self.daemon._lock:
            self.daemon._scripts.clear()
        self.daemon.line().tell(episode(left_seconds=1.0))
        until(lambda: found.reported["left_seconds"] == 1.0, "the new line is read")
        found.end()

    def test_what_is_asked_about_the_episode(self) -> None:
        found, _ = self.begin()
        state: dict[str, list[Any]] = {"cookies": [], "origins": []}
        self.daemon.script("GET", f"{ONE}/storage-state/shop?account=a%26b", Reply(200, state))
        self.assertEqual(found.storage_state("shop", "a&b"), state)
        self.daemon.script("POST", f"{ONE}/freeze", Reply(200, episode(state="frozen")))
        self.daemon.script("POST", f"{ONE}/unfreeze", Reply(200, episode()))
        found.freeze()
        found.unfreeze()
        self.daemon.script("POST", f"{ONE}/heartbeat", Reply(200, episode(left_seconds=120.0)))
        self.assertEqual(found.extend(120), 120.0)
        self.assertEqual(self.daemon.asked("POST", f"{ONE}/heartbeat")[0][0], {"extend_seconds": 120})
        self.daemon.script("GET", f"{ONE}/har", Reply(200, {"log": {}}))
        self.assertEqual(found.har(), {"log": {}})
        found.end()

    def test_its_changes_are_compared_as_asked(self) -> None:
        found, _ = self.begin()
        equal = {"episode": "ep-1", "equal": True, "sites": [], "left_out": []}
        self.daemon.script("GET", f"{ONE}/changes", Reply(200, equal))
        self.assertEqual(found.changes(), equal)
        self.daemon.script("POST", f"{ONE}/looks", Reply(201, {"number": 1}))
        self.assertEqual(found.look(), 1)
        changed = {**equal, "since": 0, "until": 1, "equal": False}
        query = "site=shop&site=a%26b&since=0&until=1&values=true"
        self.daemon.script("GET", f"{ONE}/changes?{query}", Reply(200, changed))
        self.assertEqual(found.changes(["shop", "a&b"], since=0, until=1, values=True), changed)
        with self.assertRaises(TypeError):
            found.changes("shop")
        self.daemon.script("GET", f"{ONE}/changes?site=map", Reply.problem(410, "void", ending()))
        with self.assertRaises(EpisodeVoid):
            found.changes(["map"])
        found.end()

    def test_its_changes_can_be_awaited(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
        told = {"episode": "ep-1", "equal": None, "sites": [], "left_out": []}
        self.daemon.script("GET", f"{ONE}/changes?site=shop&since=1", Reply(200, told))
        self.daemon.script("POST", f"{ONE}/looks", Reply(201, {"number": 1}))

        async def compared() -> Any:
            waiting = asyncio.ensure_future(AsyncArena(self.daemon.address).episode(["shop"]))
            (await asyncio.to_thread(self.daemon.line)).tell(episode())
            async with await waiting as found:
                return await found.changes(["shop"], since=await found.look())

        self.assertEqual(asyncio.run(compared()), told)

    def test_the_captured_values_are_part_of_the_evaluation(self) -> None:
        found, _ = self.begin()
        self.daemon.script("POST", f"{ONE}/evaluations/begin", Reply(200, {"task": "t"}))
        judged = {"episode": "ep-1", "verdict": "passed", "reward": 1.0, "ending": None}
        self.daemon.script("POST", f"{ONE}/evaluations", Reply(200, judged))
        found.begin()
        self.assertEqual(found.evaluate(answer="5", url="http://x/")["reward"], 1.0)
        ((body, _),) = self.daemon.asked("POST", f"{ONE}/evaluations")
        self.assertEqual((body["begun"], body["answer"], body["url"]), ({"task": "t"}, "5", "http://x/"))
        self.assertTrue(body["certificate"])
        found.evaluate({"task_id": 3}, benchmark="webarena", answer="5", profiles=["strict"], har={"log": {}}, certificate=False)
        body = self.daemon.asked("POST", f"{ONE}/evaluations")[1][0]
        self.assertEqual((list(body), body["certificate"]), (["benchmark", "certificate"], False))
        self.assertEqual((body["benchmark"]["task"], body["benchmark"]["profiles"]), ({"task_id": 3}, ["strict"]))
        self.assertEqual(body["benchmark"]["traffic"], {"har": {"log": {}}})
        found.end()


class Ending(ScriptedTest):
    def test_a_void_episode_is_told_at_the_end_of_the_block(self) -> None:
        with self.assertRaises(EpisodeVoid) as caught:
            found, line = self.begin()
            with found:
                self.tell_end(line, found, ending())
        self.assertEqual((caught.exception.code, caught.exception.reason), ("void", "void, because of container_died"))
        self.assertEqual(caught.exception.ending["code"], "container_died")

    def test_it_explains_the_failure_of_the_block(self) -> None:
        with self.assertRaises(EpisodeVoid) as caught:
            found, line = self.begin()
            with found:
                self.tell_end(line, found, ending())
                raise RuntimeError("the page did not answer")
        self.assertIsInstance(caught.exception.__cause__, RuntimeError)

    def test_it_does_not_hide_what_stops_the_program(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            found, line = self.begin()
            with found:
                self.tell_end(line, found, ending())
                raise KeyboardInterrupt

    def test_an_end_that_the_client_did_not_ask_for_is_told(self) -> None:
        with self.assertRaises(EpisodeEnded) as caught:
            found, line = self.begin()
            with found:
                self.tell_end(line, found, ending("released", "client"))
        self.assertEqual(caught.exception.code, "ended")
        self.assertNotIsInstance(caught.exception, EpisodeVoid)

    def test_a_verdict_counts_if_the_environment_fails_after_it(self) -> None:
        found, line = self.begin()
        judged = {"episode": "ep-1", "verdict": "failed", "reward": 0.0, "ending": None}
        self.daemon.script("POST", f"{ONE}/evaluations", Reply(200, judged))
        with found:
            self.assertEqual(found.evaluate()["reward"], 0.0)
            self.tell_end(line, found, ending())

    def test_the_verdict_void_is_an_exception_and_no_reward(self) -> None:
        found, _ = self.begin()
        judged = {"episode": "ep-1", "verdict": "void", "reward": None, "ending": ending()}
        self.daemon.script("POST", f"{ONE}/evaluations", Reply(200, judged))
        with self.assertRaises(EpisodeVoid) as caught:
            found.evaluate()
        self.assertEqual(caught.exception.reason, "void, because of container_died")
        found.end()

    def test_every_request_tells_that_the_episode_is_void(self) -> None:
        found, _ = self.begin()
        gone = Reply.problem(410, "void", ending())
        self.daemon.script("GET", f"{ONE}/har", gone)
        self.daemon.script("POST", f"{ONE}/freeze", gone)
        for ask in (found.har, found.freeze):
            with self.assertRaises(EpisodeVoid):
                ask()
        found.end()

    def test_an_end_that_was_told_explains_why_no_daemon_answers(self) -> None:
        found, line = self.begin()
        self.daemon.script("POST", f"{ONE}/freeze", Reply(None))
        self.daemon.script("DELETE", ONE, Reply(None))
        with self.assertRaises(Unreachable):
            found.freeze()
        line.tell(episode(state="void", ending=ending()))
        for call in (found.freeze, found.end):
            with self.assertRaises(EpisodeVoid) as caught:
                call()
            self.assertEqual(caught.exception.reason, "void, because of container_died")

    def test_states_are_told_until_the_end(self) -> None:
        found, _ = self.begin()
        told = [
            {"seq": 1, "at": "", "episode": "ep-1", "state": "active", "ending": None},
            {"seq": 2, "at": "", "episode": "ep-1", "state": "void", "ending": ending()},
        ]
        lines = [f"id: {event['seq']}\nevent: episode.{event['state']}\ndata: {json.dumps(event)}\n\n" for event in told]
        self.daemon.stream(f"{ONE}/events", lines[0])
        self.daemon.stream(f"{ONE}/events?after=1", lines[1])
        self.assertEqual([event["state"] for event in found.events()], ["active", "void"])
        found.end()


class Forking(ScriptedTest):
    def test_children_are_held_and_end_with_their_own_blocks(self) -> None:
        parent, _ = self.begin()
        children = [started(f"ep-{number}", "active") for number in (2, 3)]
        self.daemon.script("POST", f"{ONE}/fork", Reply(201, {"children": children}))
        one, other = parent.fork(2)
        ((body, headers),) = self.daemon.asked("POST", f"{ONE}/fork")
        self.assertEqual(body, {"children": 2, "wait_seconds": 60, "detach": True})
        self.assertTrue(headers["idempotency-key"])
        lines = [self.daemon.line("ep-2"), self.daemon.line("ep-3")]
        with one:
            self.assertEqual((one.id, one.proxy_url), ("ep-2", "http://ep-2:c0ffee@127.0.0.1:7500"))
        self.assertTrue(lines[0].closed.wait(PATIENCE))
        self.assertFalse(lines[1].closed.is_set())
        parent.end()
        self.assertEqual(self.daemon.asked("DELETE", f"{EPISODES}/ep-3"), [])
        other.end()
        self.assertEqual(len(self.daemon.asked("DELETE", f"{EPISODES}/ep-3")), 1)

    def test_children_are_returned_when_all_have_their_slots(self) -> None:
        parent, _ = self.begin()
        children = [started(f"ep-{number}") for number in (2, 3)]
        self.daemon.script("POST", f"{ONE}/fork", Reply(202, {"children": children}))

        def grant() -> None:
            for id in ("ep-3", "ep-2"):
                self.daemon.line(id).tell(episode(id))

        granting = threading.Thread(target=grant)
        granting.start()
        forked = parent.fork(2, timeout=5, labels={"depth": "1"}, record="all")
        granting.join()
        self.assertEqual([child.state for child in forked], ["active", "active"])
        body, _ = self.daemon.asked("POST", f"{ONE}/fork")[0]
        self.assertEqual((body["labels"], body["record"]), ({"depth": "1"}, "all"))
        for child in [*forked, parent]:
            child.end()

    def test_there_is_no_child_if_one_gets_no_slot(self) -> None:
        parent, _ = self.begin()
        children = [started(f"ep-{number}") for number in (2, 3)]
        self.daemon.script("POST", f"{ONE}/fork", Reply(202, {"children": children}))

        def refuse() -> None:
            self.daemon.line("ep-2").tell(episode("ep-2"))
            self.daemon.line("ep-3").tell(episode("ep-3", state="expired", ending=ending("expired", "wait")))

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with self.assertRaises(NoSlot):
            parent.fork(2, timeout=1)
        refusing.join()
        self.assertEqual(len(self.daemon.asked("DELETE", f"{EPISODES}/ep-2")), 1)
        parent.end()

    def test_children_of_a_fork_that_fails_are_ended(self) -> None:
        parent, _ = self.begin()
        children = [started(f"ep-{number}", "active") for number in (2, 3)]
        self.daemon.script("POST", f"{ONE}/fork", Reply(201, {"children": children}))
        self.daemon.script("GET", f"{EPISODES}/ep-3/hold", Reply.problem(410, "void", ending()))
        with self.assertRaises(EpisodeVoid):
            parent.fork(2)
        self.assertEqual(len(self.daemon.asked("DELETE", f"{EPISODES}/ep-2")), 1)
        parent.end()


GUIDE = Path(__file__).resolve().parents[3] / "docs/guides/python.md"


class Searching(ScriptedTest):
    def test_the_guides_search_finds_the_actions_and_ends_every_episode(self) -> None:
        (code,) = [block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "def search" in block]
        guide: dict[str, Any] = {"Arena": None}
        exec(compile(code, str(GUIDE), "exec"), guide)
        guide["Arena"] = lambda: self.arena
        self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
        self.daemon.script("POST", f"{ONE}/evaluations/begin", Reply(200, {"task": "t"}))
        forks = {"ep-1": ["ep-2", "ep-3"], "ep-3": ["ep-4", "ep-5"]}
        for parent, children in forks.items():
            reply = Reply(201, {"children": [started(child, "active") for child in children]})
            self.daemon.script("POST", f"{EPISODES}/{parent}/fork", reply)
        for id, reward in (("ep-2", None), ("ep-3", 0.0), ("ep-4", 1.0)):
            verdict = {1.0: "passed", 0.0: "failed", None: "void"}[reward]
            judged = {"episode": id, "verdict": verdict, "reward": reward, "ending": None if reward is not None else ending()}
            self.daemon.script("POST", f"{EPISODES}/{id}/evaluations", Reply(200, judged))
        self.daemon.script("DELETE", f"{EPISODES}/ep-2", Reply.problem(410, "void", ending()))

        def propose(_: Episode, path: list[str]) -> list[str]:
            return ["left", "right"]

        found = guide["search"]("t", propose, lambda *_: "done", lambda _, path: float(len(path)))
        self.assertEqual(found, ["right", "left"])
        for number in range(1, 6):
            self.assertEqual(len(self.daemon.asked("DELETE", f"{EPISODES}/ep-{number}")), 1, number)
        self.assertEqual(self.daemon.asked("POST", f"{EPISODES}/ep-4/evaluations")[0][0]["begun"], {"task": "t"})


HOLDER = """
import os, sys, time
from arenad import Arena
episode = Arena(sys.argv[1]).episode(["shop"])
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(60)
print("held", flush=True)
time.sleep(60)
"""


class Killing(ScriptedTest):
    def holder(self, how: str) -> "subprocess.Popen[str]":
        self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, self.daemon.address, how],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: os.killpg(process.pid, signal.SIGKILL))
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    def test_a_killed_process_gives_its_episode_up(self) -> None:
        process = self.holder("alone")
        line = self.daemon.line()
        self.assertFalse(line.closed.is_set())
        process.kill()
        self.assertTrue(line.closed.wait(PATIENCE))

    def test_a_child_of_a_killed_process_does_not_hold_its_episode(self) -> None:
        process = self.holder("fork")
        line = self.daemon.line()
        process.kill()
        self.assertTrue(line.closed.wait(PATIENCE))


class Awaiting(ScriptedTest):
    def test_more_episodes_wait_than_the_pool_has_threads(self) -> None:
        count = 100
        replies = [Reply(202, started(f"ep-{number}")) for number in range(count)]
        self.daemon.script("POST", EPISODES, *replies)

        async def one(arena: AsyncArena) -> str:
            async with arena.episode(["shop"]) as found:
                return found.state

        async def all_of_them() -> list[str]:
            arena = AsyncArena(self.daemon.address)
            tasks = [asyncio.create_task(one(arena)) for _ in range(count)]
            lines = [await asyncio.to_thread(self.daemon.line, f"ep-{number}") for number in range(count)]
            for number, line in enumerate(lines):
                line.tell(episode(f"ep-{number}"))
            return await asyncio.gather(*tasks)

        self.assertEqual(asyncio.run(all_of_them()), ["active"] * count)

    def test_a_cancelled_wait_withdraws_the_request(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(202, started()))

        async def cancelled() -> None:
            task = asyncio.ensure_future(AsyncArena(self.daemon.address).episode(["shop"]).__aenter__())
            line = await asyncio.to_thread(self.daemon.line)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(await asyncio.to_thread(line.closed.wait, PATIENCE))

        asyncio.run(cancelled())
        until(lambda: self.daemon.asked("DELETE", ONE), "the request is withdrawn")

    def test_void_is_told_and_states_are_awaited(self) -> None:
        self.daemon.script("POST", EPISODES, Reply(201, started(state="active")))
        told = {"seq": 2, "at": "", "episode": "ep-1", "state": "void", "ending": ending()}
        self.daemon.stream(f"{ONE}/events", f"event: episode.void\ndata: {json.dumps(told)}\n\n")
        self.daemon.script("DELETE", ONE, Reply.problem(410, "void", ending()))

        async def voided() -> list[str]:
            states: list[str] = []
            with self.assertRaises(EpisodeVoid):
                async with AsyncArena(self.daemon.address).episode(["shop"]) as found:
                    states += [event["state"] async for event in found.events()]
            return states

        self.assertEqual(asyncio.run(voided()), ["void"])


if __name__ == "__main__":
    unittest.main()
