"""Client of arenad, which runs the sites that web agents are tested on."""

from ._client import Arena, AsyncArena
from ._errors import ArenadError, OperationFailed, Unreachable

__all__ = ["Arena", "ArenadError", "AsyncArena", "OperationFailed", "Unreachable"]
