"""The client of arenad, which runs the sites on which web agents are tested."""

from ._async import AsyncEpisode
from ._client import Arena, AsyncArena
from ._episode import Episode
from ._errors import ArenadError, EpisodeEnded, EpisodeVoid, NoSlot, OperationFailed, Undecided, Unreachable

Client = Arena
"""Another name of `Arena`."""

AsyncClient = AsyncArena
"""Another name of `AsyncArena`."""

__all__ = [
    "Arena",
    "ArenadError",
    "AsyncArena",
    "AsyncClient",
    "AsyncEpisode",
    "Client",
    "Episode",
    "EpisodeEnded",
    "EpisodeVoid",
    "NoSlot",
    "OperationFailed",
    "Undecided",
    "Unreachable",
]
