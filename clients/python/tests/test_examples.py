"""Runs the examples of the docstrings against the daemon that the project's tests start."""

from __future__ import annotations

import doctest
import unittest

from arenad import _client, _episode


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    for module in (_client, _episode):
        examples = doctest.DocTestSuite(module)
        assert examples.countTestCases() > 0, f"{module.__name__} has examples"
        tests.addTests(examples)
    return tests


if __name__ == "__main__":
    unittest.main()
