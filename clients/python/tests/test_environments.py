"""Tests the client with two environments up, each with a site `toy`; the project's tests start them and run this file."""

import os
import unittest
from typing import Any, Callable

from arenad import Arena, ArenadError

NAMES = os.environ.get("ARENAD_TEST_ENVIRONMENTS", "")

GITLAB_TASK = {
    "task_id": 1,
    "sites": [],
    "start_url": "__GITLAB__",
    "intent": "How many?",
    "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "five"}},
}


@unittest.skipUnless(NAMES, "for two environments")
class SeveralEnvironments(unittest.TestCase):
    def setUp(self) -> None:
        self.first, self.second = NAMES.split(",")

    def test_a_name_of_both_is_refused_and_both_are_named(self) -> None:
        arena = Arena()
        calls: list[Callable[[], Any]] = [
            lambda: arena.reset("toy"),
            lambda: arena.reset(),
            lambda: arena.verify("toy"),
            lambda: arena.value("toy", "http: GET /cgi-bin/page | status"),
            lambda: arena.har("toy"),
            lambda: arena.har(),
            lambda: arena.login("toy", "customer"),
            lambda: arena.take_snapshot("toy", "x"),
            lambda: arena.urls(),
            lambda: arena.begin("toy.both"),
        ]
        for call in calls:
            with self.assertRaises(ArenadError) as caught:
                call()
            self.assertEqual(caught.exception.code, "which_environment", caught.exception)
            self.assertIn(self.first, caught.exception.detail)
            self.assertIn(self.second, caught.exception.detail)
            self.assertIn("environment=", caught.exception.hint or "")

    def test_the_environment_is_named_in_a_call_or_for_all_calls(self) -> None:
        of_second = Arena(environment=self.second)
        for name, value in (("call", Arena().urls(environment=self.second)), ("arena", of_second.urls())):
            self.assertEqual(list(value), ["toy"], name)
        self.assertNotEqual(of_second.urls(), of_second.urls(environment=self.first))
        self.assertEqual(len(Arena().sites()), 2)
        (operation,) = Arena().reset("toy", environment=self.second)
        self.assertEqual((operation["environment"], operation["state"]), (self.second, "done"))
        self.assertEqual(of_second.value("toy", "http: GET /cgi-bin/page | status"), 200)
        self.assertEqual({found["environment"] for found in Arena().snapshots(environment=self.first)}, {self.first})
        with self.assertRaises(ArenadError) as caught:
            Arena(environment="nowhere").sites()
        self.assertIn(self.first, caught.exception.hint or "")

    def test_tasks_are_found_where_they_are(self) -> None:
        arena = Arena()
        begun = arena.begin("toy.write", reset=True)
        self.assertEqual(begun["environment"], self.second)
        self.assertEqual(arena.check(begun)["report"]["verdict"], "failed")
        begun = arena.begin("toy.both", environment=self.first, reset=True)
        self.assertEqual(arena.check(begun)["environment"], self.first)
        evaluation = arena.evaluate("webarena", GITLAB_TASK, answer="five")
        self.assertEqual(evaluation["evaluated"]["reports"][0]["verdict"], "passed")
        shopping = {**GITLAB_TASK, "start_url": "__GITLAB__ |AND| __SHOPPING__"}
        with self.assertRaises(ArenadError) as caught:
            arena.evaluate("webarena", shopping, answer="five")
        self.assertIn(self.first, caught.exception.detail)


if __name__ == "__main__":
    unittest.main()
