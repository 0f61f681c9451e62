"""Tests the site handler for webarena-verified without a daemon; tests/clients/harnesses.rs runs it with the package."""

from __future__ import annotations

import unittest
from typing import Any, cast

from arenad import Arena, ArenadError
from arenad.webarena_verified import ArenadSiteHandler


class Context:
    """A browser context that keeps the cookies that it is given."""

    def __init__(self) -> None:
        self.cookies: list[Any] = []

    def add_cookies(self, cookies: list[Any]) -> None:
        self.cookies += cookies


class FakeArena:
    """A client whose log-in has a prepared result."""

    _environment = None
    _given = (None, None)

    def __init__(self, session: dict[str, Any] | ArenadError) -> None:
        self.session = session
        self.asked: list[tuple[str, str | None]] = []

    def login(self, site: str, account: str | None, *, environment: str | None) -> Any:
        self.asked.append((site, account))
        if isinstance(self.session, ArenadError):
            raise self.session
        return self.session


def login(arena: FakeArena, account: str | None = None) -> tuple[Any, list[Any]]:
    context = Context()
    handler = ArenadSiteHandler("shop", arena=cast(Arena, arena), account=account)
    return handler.login(cast(Any, context)), context.cookies


class SigningIn(unittest.TestCase):
    def test_a_session_of_cookies_signs_the_context_in(self) -> None:
        arena = FakeArena({"cookies": [{"name": "id", "value": "7"}], "headers": {}})
        self.assertEqual(login(arena, "customer"), (None, [{"name": "id", "value": "7"}]))
        self.assertEqual(arena.asked, [("shop", "customer")])

    def test_a_session_of_headers_returns_them(self) -> None:
        headers = {"X-M2-Customer-Auto-Login": "a:b"}
        self.assertEqual(login(FakeArena({"cookies": [], "headers": headers})), (headers, []))

    def test_a_refusal_is_a_runtime_error_as_the_protocol_says(self) -> None:
        refusal = ArenadError("no such account", code="unknown_account")
        with self.assertRaisesRegex(RuntimeError, "shop: no such account") as caught:
            login(FakeArena(refusal))
        self.assertIs(caught.exception.__cause__, refusal)


if __name__ == "__main__":
    unittest.main()
