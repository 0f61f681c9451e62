"""Fixtures of the tests with BrowserGym and AgentLab; `scripts/test-harnesses.sh` runs them."""

from mini import client, sites_are_given_back

__all__ = ["client", "sites_are_given_back"]
