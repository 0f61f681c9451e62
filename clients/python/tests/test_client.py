"""Tests the client against a daemon that has the site `toy` up; the project's tests start the daemon and run this file."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from urllib.parse import urljoin, urlsplit

from arenad import Arena, ArenadError, AsyncArena, EpisodeEnded, EpisodeVoid, NoSlot, Unreachable


def page(url: str) -> str:
    with urllib.request.urlopen(urljoin(url, "/cgi-bin/page")) as answer:
        return answer.read().decode()


def serving(arena: Arena) -> str:
    """Returns the URL of the site when it serves. It answers 503 while a slot that an episode gave back is restored."""
    url = arena.urls()["toy"]
    deadline = time.monotonic() + 60
    while True:
        try:
            page(url)
            return url
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 503 or time.monotonic() > deadline:
                    raise
        time.sleep(0.05)


def write(url: str, word: str) -> None:
    # The site writes before the end of its answer, but not before its beginning.
    with urllib.request.urlopen(urljoin(url, f"/cgi-bin/write?{word}")) as answer:
        answer.read()


class Resetting(unittest.TestCase):
    def test_what_was_written_is_gone_after_a_reset(self) -> None:
        with Arena() as arena:
            url = serving(arena)
            before = page(url)
            write(url, "scribble")
            self.assertIn("scribble", page(url))
            (operation,) = arena.reset("toy")
            self.assertEqual(operation["state"], "done")
            self.assertIn(operation["reset"]["strategy"], ("swap", "rewind", "recreate"))
            self.assertEqual(page(url), before)
            # The event is stored independently of the operation that the caller waits for.
            deadline = time.monotonic() + 60
            while "instance.reset" not in [event["kind"] for event in arena.events()]:
                self.assertLess(time.monotonic(), deadline, "the reset is among the events")
                time.sleep(0.05)

    def test_a_snapshot_is_taken_and_gone_back_to(self) -> None:
        with Arena() as arena:
            url = serving(arena)
            write(url, "kept")
            taken = arena.take_snapshot("toy", "with-kept")
            self.assertEqual((taken["name"], taken["site"]), ("with-kept", "toy"))
            self.assertIn(taken["id"], [found["id"] for found in arena.snapshots()])
            arena.reset()
            self.assertNotIn("kept", page(url))
            arena.reset("toy", to="with-kept")
            self.assertIn("kept", page(url))
            arena.reset("toy")

    def test_values_are_read_with_their_evidence(self) -> None:
        with Arena() as arena:
            located = arena.locate("toy", "http: GET /cgi-bin/page | status")
            self.assertEqual((located["type"], located["value"]), ("integer", 200))
            self.assertEqual(located["evidence"]["site"], "toy")
            with self.assertRaises(ArenadError) as caught:
                arena.har("toy")
            self.assertEqual(caught.exception.code, "not_recorded")
            self.assertIn("record: all", caught.exception.hint or "")
            self.assertEqual(arena.value("toy", "http: GET /cgi-bin/page | status"), 200)

    def test_an_episode_is_begun_and_checked(self) -> None:
        with Arena() as arena:
            url = serving(arena)
            begun = arena.begin("toy.write", reset=True)
            self.assertEqual(begun["intent"], "Make the site remember pears")
            self.assertEqual(arena.check(begun)["report"]["verdict"], "failed")
            write(url, "pears")
            self.assertEqual(arena.check(begun, answer="done", url=url)["report"]["verdict"], "passed")
            arena.reset("toy")
            self.assertEqual(arena.check(begun)["report"]["verdict"], "inconclusive")

    def test_the_daemon_and_the_site_are_described(self) -> None:
        with Arena() as arena:
            serving(arena)
            self.assertEqual(arena.version()["api"], "v1")
            self.assertEqual([(found["name"], found["login"]) for found in arena.accounts("toy")], [("customer", None)])
            self.assertIsInstance(arena.logs("toy", tail=5), str)
            self.assertEqual([(site["site"], site["state"]) for site in arena.health("toy", limit=1)], [("toy", "ready")])
            self.assertEqual(arena.certificate_key()["algorithm"], "ed25519")
            self.assertIn("snapshots", arena.df())
            self.assertTrue(arena.prune(trial=True)["is_trial"])
            (operation,) = arena.reset("toy")
            self.assertEqual(arena.find_reset(operation["reset"]["id"])["outcome"], operation["reset"]["outcome"])
            self.assertEqual(arena.operation(operation["id"])["state"], "done")
            with self.assertRaises(ArenadError) as caught:
                arena.changes("toy")
            self.assertEqual((caught.exception.code, caught.exception.status), ("cannot_verify", 409))
            taken = arena.take_snapshot("toy", "to-remove")
            self.assertEqual(arena.find_snapshot("to-remove")["id"], taken["id"])
            with self.assertRaisesRegex(ArenadError, "its digest has not been taken"):
                arena.snapshot_differences("to-remove", taken["id"])
            arena.remove_snapshot("to-remove")
            self.assertNotIn(taken["id"], [found["id"] for found in arena.snapshots()])

    def test_it_can_be_awaited(self) -> None:
        async def both() -> None:
            async with AsyncArena() as arena:
                urls, status = await asyncio.gather(arena.urls(), arena.status())
                self.assertEqual(urls["toy"], status["environments"][0]["sites"][0]["url"])
                self.assertEqual((await arena.reset("toy"))[0]["state"], "done")

        asyncio.run(both())


HOLDER = """
import time
from arenad import Arena
episode = Arena().episode(["toy"])
print(episode.id, flush=True)
time.sleep(600)
"""


class Episodes(unittest.TestCase):
    def test_an_episode_is_recorded_found_and_ended_by_its_id(self) -> None:
        with Arena() as arena:
            with arena.episode(["toy"], record="all") as episode:
                page(episode.urls["toy"])
            entries = arena.episode_har(episode.id)["log"]["entries"]
            self.assertTrue(any("/cgi-bin/page" in entry["request"]["url"] for entry in entries))
            serving(arena)
            other = arena.episode(["toy"])
            arena.end_episode(other.id)
            with self.assertRaises(EpisodeEnded):
                other.end()
            seen = next(event for event in arena.episode_events(after=0) if event["episode"] == other.id)
            self.assertEqual(seen["state"], "queued")

    def test_a_site_is_pristine_and_judged_and_given_back(self) -> None:
        with Arena() as arena:
            write(serving(arena), "people")
            with arena.episode(task="toy.write", owner="ann", labels={"run": "7"}) as episode:
                url = episode.urls["toy"]
                self.assertNotIn("people", page(url))
                self.assertEqual((episode.state, episode.is_proxied), ("active", False))
                self.assertEqual(episode.labels, {"run": "7", "task": "toy.write"})
                self.assertTrue(episode.reported["is_held"])
                (listed,) = arena.episodes(owner="ann", labels={"run": "7"}, live=True)
                self.assertEqual(listed["id"], episode.id)
                self.assertEqual(episode.evaluate()["reward"], 0.0)
                write(url, "pears")
                judged = episode.evaluate(answer="done", url=url)
                self.assertEqual((judged["verdict"], judged["reward"]), ("passed", 1.0))
                self.assertEqual(judged["certificate"]["statement"]["episode"]["id"], episode.id)
                self.assertNotIn("certificate", episode.evaluate(certificate=False))
                located = episode.locate("toy", "http: GET /cgi-bin/page | status")
                self.assertEqual((located["value"], located["evidence"]["site"]), (200, "toy"))
                self.assertIn("pears", episode.value("toy", "http: GET /cgi-bin/page"))
                self.assertEqual(episode.env["ARENAD_URL_TOY"], url)
                with self.assertRaises(ArenadError) as caught:
                    episode.login("toy")
                self.assertEqual(caught.exception.code, "no_login")
                self.assertEqual(arena.find_episode(episode.id)["state"], "active")
                episode.freeze()
                with self.assertRaises(ArenadError) as caught:
                    episode.storage_state("toy")
                self.assertEqual(caught.exception.code, "no_login")
                changes = episode.changes(["toy"])
                self.assertEqual((changes["episode"], changes["equal"], changes["sites"]), (episode.id, None, []))
                self.assertEqual([(site["site"], site["code"]) for site in changes["left_out"]], [("toy", "no_stores")])
                episode.unfreeze()
                self.assertGreater(episode.extend(1200), 1000)
            with self.assertRaises(EpisodeEnded) as told:
                episode.value("toy", "http: GET /cgi-bin/page")
            self.assertEqual(told.exception.status, 410)
            states = [event["state"] for event in episode.events()]
            self.assertEqual((states[0], states[-1]), ("queued", "released"))
            with arena.episode(["toy"]) as episode:
                self.assertNotIn("pears", page(episode.urls["toy"]))

    def test_a_recorded_episode_has_the_requests_that_were_asked_for(self) -> None:
        for record, paths in (("all", ["/cgi-bin/page", "/cgi-bin/write"]), ("none", [])):
            with Arena().episode(["toy"], timeout=120, record=record) as episode:
                self.assertEqual(episode.reported.get("record"), record)
                self.assertEqual(episode.port_urls, episode.urls, "its slot has the public port alone")
                page(episode.urls["toy"])
                write(episode.urls["toy"], "pears")
                entries = episode.har()["log"]["entries"]
                self.assertEqual([urlsplit(entry["request"]["url"]).path for entry in entries], paths)

    def test_a_request_waits_for_the_slot_and_not_for_ever(self) -> None:
        arena = Arena()
        with arena.episode(["toy"]):
            with self.assertRaises(NoSlot) as caught:
                arena.episode(["toy"], timeout=1)
            self.assertEqual(caught.exception.ending["code"], "wait")
        self.assertEqual(arena.queue(), [])

    def test_a_killed_process_frees_its_sites(self) -> None:
        holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        with holder.stdout as said:
            held = said.readline().strip()
        holder.kill()
        holder.wait()
        with Arena().episode(["toy"], timeout=30):
            (ended,) = [known for known in Arena().episodes() if known["id"] == held]
            assert ended["ending"] is not None
            self.assertEqual(ended["ending"]["code"], "hold_closed")

    def test_episodes_can_be_awaited(self) -> None:
        async def one_after_the_other() -> list[str]:
            arena = AsyncArena()

            async def one() -> str:
                async with arena.episode(["toy"], timeout=120) as episode:
                    return episode.state

            return await asyncio.gather(*(one() for _ in range(3)))

        self.assertEqual(asyncio.run(one_after_the_other()), ["active"] * 3)


class Files(unittest.TestCase):
    """Tests the methods that run the program, with the definition's files."""

    environment = os.environ.get("ARENAD_TEST_ENVIRONMENT", "")

    def setUp(self) -> None:
        if not self.environment:
            self.skipTest("for one environment with its files")

    def test_sites_are_brought_up_and_taken_down(self) -> None:
        arena = Arena(environment=self.environment)
        arena.down("toy")
        with self.assertRaises(ArenadError):
            arena.urls()
        (operation,) = arena.up("toy")
        self.assertEqual((operation["site"], operation["state"]), ("toy", "done"))
        self.assertIn("toy", arena.urls())

    def test_an_episode_without_its_environment_is_void(self) -> None:
        arena = Arena(environment=self.environment)
        with self.assertRaises(EpisodeVoid) as caught:
            with arena.episode(["toy"]) as episode:
                arena.down("toy")
                with self.assertRaises(EpisodeVoid):
                    episode.evaluate(task="toy.write")
        self.assertTrue(caught.exception.reason)
        arena.up("toy")

    def test_tasks_are_listed(self) -> None:
        names = [task["name"] for task in Arena(environment=self.environment).tasks()]
        self.assertEqual(names, ["toy.write"])

    def test_a_refusal_of_the_program_is_an_error(self) -> None:
        with self.assertRaises(ArenadError) as caught:
            Arena(environment=self.environment).up("tyo")
        self.assertEqual(caught.exception.code, "usage")
        self.assertIn("toy", caught.exception.hint or "")


class Failing(unittest.TestCase):
    def test_an_account_that_is_not_named_must_be_the_only_one(self) -> None:
        with self.assertRaises(ArenadError) as caught:
            Arena().login("toy")
        self.assertEqual(caught.exception.code, "no_login")

    def test_a_task_of_a_number_is_looked_up_in_the_file(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('[{"task_id": 1}]')
            file.flush()
            with self.assertRaises(ArenadError) as caught:
                Arena().evaluate("webarena", 7, data=file.name)
        self.assertEqual(caught.exception.code, "unknown_task")

    def test_a_refusal_says_what_and_what_to_do(self) -> None:
        with self.assertRaises(ArenadError) as caught:
            Arena().reset("tyo")
        self.assertIn("tyo", caught.exception.detail)
        self.assertTrue(caught.exception.code)

    def test_no_daemon_is_an_error_of_its_own(self) -> None:
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(Unreachable) as caught:
            Arena(f"unix://{os.path.join(folder, 'none.sock')}").status()
        self.assertIn("arenad up", caught.exception.hint or "")

    def test_an_address_that_is_none_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            Arena("ftp://somewhere")


if __name__ == "__main__":
    unittest.main()
