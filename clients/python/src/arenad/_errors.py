"""The exceptions that the client raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import EpisodeEnding, EpisodeEvaluation, Operation


class ArenadError(Exception):
    """The daemon refused a request; the fields are those of problem+json (RFC 9457)."""

    def __init__(
        self, detail: str, *, code: str = "", hint: str | None = None, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(detail if hint is None else f"{detail} (hint: {hint})")
        self.detail = detail
        self.code = code
        """A stable word for programs, such as `unknown_site`."""
        self.hint = hint
        """The next step for the user."""
        self.status = status
        """The HTTP status."""
        self.retry_after = retry_after
        """The number of seconds after which the daemon suggests to try again."""


class Unreachable(ArenadError):
    """No daemon answers at the address."""


class OperationFailed(ArenadError):
    """An operation started but failed."""

    def __init__(self, operation: Operation) -> None:
        what = f"{operation['kind']} of {operation['site']}: {operation.get('reason') or operation['state']}"
        super().__init__(what, code="operation_failed", hint=operation.get("hint"))
        self.operation = operation


class EpisodeEnded(ArenadError):
    """The episode has ended, and its client can no longer reach the sites."""

    def __init__(self, detail: str, ending: EpisodeEnding, *, hint: str | None = None, status: int = 0) -> None:
        super().__init__(detail, code=_code(ending), hint=hint, status=status)
        self.ending = ending
        """How the episode ended."""
        self.reason = ending["reason"]
        """The cause as a sentence."""


class EpisodeVoid(EpisodeEnded):
    """The environment failed the episode, so its result says nothing about the agent: repeat it."""


class NoSlot(EpisodeEnded):
    """No slot came free in time."""


def ended(ending: EpisodeEnding, detail: str | None = None, *, hint: str | None = None, status: int = 0) -> EpisodeEnded:
    """Returns the exception for the end of an episode."""
    kinds: dict[str, type[EpisodeEnded]] = {"void": EpisodeVoid, "no_slot": NoSlot}
    kind = kinds.get(_code(ending), EpisodeEnded)
    return kind(detail or f"the episode has ended: {ending['reason']}", ending, hint=hint, status=status)


def _code(ending: EpisodeEnding) -> str:
    if ending["state"] == "void":
        return "void"
    return "no_slot" if ending["code"] == "wait" else "ended"


class Undecided(ArenadError):
    """The episode has no verdict, for example because it needs a judge. It is not a failure of the agent."""

    def __init__(self, evaluation: EpisodeEvaluation) -> None:
        verdict = evaluation["verdict"]
        hint = "leave the episode out, or configure what the verdict needs; `evaluation` has the evidence"
        super().__init__(f"the episode has no verdict: {verdict}", code=verdict, hint=hint)
        self.evaluation = evaluation


def decided(evaluation: EpisodeEvaluation) -> float:
    """Returns the reward of an evaluation. Raises `Undecided` if it has none."""
    if evaluation["reward"] is None:
        raise Undecided(evaluation)
    return evaluation["reward"]
