"""Fixtures of the tests with Inspect AI and Harbor; `scripts/test-harnesses.sh` runs them."""

from mini import client, sites_are_given_back

__all__ = ["client", "sites_are_given_back"]
