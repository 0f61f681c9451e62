"""The exceptions that the client raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import Operation


class ArenadError(Exception):
    """The daemon refused a request; the fields are those of problem+json (RFC 9457)."""

    def __init__(self, detail: str, *, code: str = "", hint: str | None = None, status: int = 0) -> None:
        super().__init__(detail if hint is None else f"{detail} (hint: {hint})")
        self.detail = detail
        self.code = code
        """A stable word for programs, such as `unknown_site`."""
        self.hint = hint
        """The next step for the user."""
        self.status = status
        """The HTTP status."""


class Unreachable(ArenadError):
    """No daemon answers at the address."""


class OperationFailed(ArenadError):
    """An operation started but failed."""

    def __init__(self, operation: Operation) -> None:
        what = f"{operation['kind']} of {operation['site']}: {operation.get('reason') or operation['state']}"
        super().__init__(what, code="operation_failed", hint=operation.get("hint"))
        self.operation = operation
