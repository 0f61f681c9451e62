"""Runs the benchmarks' own code on the cases of tests/vectors/mended.jsonl and stores its answers.

Usage: record.py PACKAGES, the folder that scripts/differential.sh creates. A new case needs no `expected`.
"""

import json
import os
import sys
from pathlib import Path

from run import HERE, NLTK, answers, start


def main():
    packages, file = Path(sys.argv[1]).resolve(), HERE.parent / "vectors/mended.jsonl"
    cases = [json.loads(line) for line in file.read_text().splitlines()]
    said = {}
    for benchmark in ("webarena", "visualwebarena", "verified"):
        environment = {**os.environ, "NLTK_DATA": str(packages / "nltk_data")}
        if benchmark in NLTK:
            environment["PYTHONPATH"] = str(packages / f"nltk-{NLTK[benchmark]}")
        command = [str(packages / "venv/bin/python"), str(HERE / "oracle.py"), benchmark]
        said |= answers(start(command, [case for case in cases if case["benchmark"] == benchmark], environment))
    with file.open("w") as out:
        for case in cases:
            one = said[case["id"]]
            case["expected"] = one["answer"] if "answer" in one else {"error": one["raises"].split(":")[0]}
            out.write(json.dumps(case, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
