"""The client of arenad, which runs the sites on which web agents are tested."""

from ._client import Arena, AsyncArena
from ._errors import ArenadError, OperationFailed, Unreachable

__all__ = ["Arena", "ArenadError", "AsyncArena", "OperationFailed", "Unreachable"]
