"""Generates cases from seeds, runs the benchmarks' own code and arenad on each, and reports the differences.

Every difference must belong to one of the classes in classes.py, which give the reason for accepting it; otherwise the
run fails.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import Classic
from classes import CLASSES
import verified_cases

HERE = Path(__file__).parent
# The number of cases of each kind in a hundred.
SHARES = [
    ("webarena", "tokens", 6), ("webarena", "strings", 10), ("webarena", "urls", 6), ("webarena", "pages", 5), ("webarena", "whole", 6),
    ("visualwebarena", "tokens", 5), ("visualwebarena", "strings", 8), ("visualwebarena", "urls", 2), ("visualwebarena", "pages", 4),
    ("visualwebarena", "whole", 5), ("visualwebarena", "numbers", 1), ("visualwebarena", "pictures", 1),
    ("verified", "equal", 22), ("verified", "urls", 6), ("verified", "whole", 13),
]
NLTK = {"webarena": "3.8.1", "visualwebarena": "3.10.4"}


def cases(arguments, packages):
    site = next((packages / "venv/lib").glob("python*/site-packages"))
    classic = {
        "webarena": Classic("webarena", site / "webarena/test.raw.json"),
        "visualwebarena": Classic("visualwebarena", site / "visualwebarena/test_raw.json"),
    }
    tasks = verified_cases.Tasks(task_file(packages))
    verified = {"equal": verified_cases.equal, "urls": verified_cases.urls, "whole": tasks.whole}
    kinds = [(benchmark, kind) for benchmark, kind, _ in SHARES]
    weights = [share for *_, share in SHARES]
    for number in range(arguments.cases):
        # Each case has its own seed, so that it can be regenerated alone.
        r = random.Random(f"{arguments.seed}/{number}")
        benchmark, kind = r.choices(kinds, weights)[0]
        if arguments.only is not None and number != arguments.only:
            continue
        make = verified[kind] if benchmark == "verified" else getattr(classic[benchmark], kind)
        function, given = make(r)
        yield {"id": number, "benchmark": benchmark, "kind": kind, "function": function, "input": writable(given)}


def writable(value):
    """Replaces lone surrogates, which files can contain only as escapes."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "?", value)
    if isinstance(value, list):
        return [writable(item) for item in value]
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    return value


def task_file(packages):
    site = next((packages / "venv/lib").glob("python*/site-packages"))
    return site / "webarena_verified/assets/dataset/webarena-verified.json"


def start(command, cases, environment=None):
    given, out = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    for case in cases:
        given.write(json.dumps(case) + "\n")
    given.seek(0)
    child = subprocess.Popen(command, stdin=given, stdout=out, env=environment, start_new_session=True)
    return child, out, command


def answers(started):
    child, out, command = started
    if child.wait() != 0:
        sys.exit(f"{command} ended with {child.returncode}")
    out.seek(0)
    return {said["id"]: said for said in map(json.loads, out)}


def ask_all(arguments, packages, made):
    """Returns the answers of the benchmarks' code and of arenad."""
    running, last = [], []
    try:
        for benchmark in ("webarena", "visualwebarena", "verified"):
            environment = {**os.environ, "NLTK_DATA": str(packages / "nltk_data"), "PYTHONHASHSEED": "0"}
            if benchmark in NLTK:
                environment["PYTHONPATH"] = str(packages / f"nltk-{NLTK[benchmark]}")
            command = [str(packages / "venv/bin/python"), str(HERE / "oracle.py"), benchmark]
            of_benchmark = [case for case in made if case["benchmark"] == benchmark]
            for part in range(arguments.jobs):
                running.append(start(command, of_benchmark[part :: arguments.jobs], environment))
        last.append(start([arguments.binary, str(task_file(packages))], made))
        ours, theirs = answers(last[0]), {}
        for started in running:
            theirs |= answers(started)
        return theirs, ours
    finally:
        for child, *_ in running + last:
            child.terminate()


def is_same(case, theirs, ours):
    """Returns whether both decide in the same way. If the benchmark's code raises, there is no score, which counts as
    nought."""
    if "undecided" in ours:
        return False
    nought = lambda said: "raises" in said or said.get("answer") in (0, 0.0, False)
    if "raises" in theirs or "raises" in ours:
        return nought(theirs) and nought(ours)
    one, other = theirs["answer"], ours["answer"]
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 or (one != one and other != other)
    return one == other


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--only", type=int, help="the number of one case, to be shown in full")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes answer with each benchmark's code")
    parser.add_argument("--examples", type=int, default=3)
    arguments = parser.parse_args()
    packages = arguments.packages.resolve()
    print(f"seed {arguments.seed}, {arguments.cases} cases", flush=True)
    began = time.monotonic()
    every, theirs, ours = [], {}, {}
    for made in batches(cases(arguments, packages)):
        one, other = ask_all(arguments, packages, made)
        every, theirs, ours = every + made, theirs | one, ours | other
        unknown = [c for c in made if not is_same(c, one[c["id"]], other[c["id"]]) and not known(c, one, other)]
        print(f"{len(every)} cases, {len(unknown)} new differences", flush=True)
        for case in unknown[:20]:
            show(case, one, other)
    report(arguments, every, theirs, ours, time.monotonic() - began)


def batches(cases, size=12_500):
    batch = []
    for case in cases:
        batch.append(case)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def known(case, theirs, ours):
    """Returns the class of a difference, or None."""
    return next((name for name, _, fits in CLASSES if fits(case, theirs[case["id"]], ours[case["id"]])), None)


def show(case, theirs, ours):
    print(f"  {case['id']} {case['function']} {json.dumps(case['input'], ensure_ascii=False)[:600]}")
    print(f"    theirs {str(theirs[case['id']])[:300]}\n    ours   {str(ours[case['id']])[:300]}", flush=True)


def report(arguments, made, theirs, ours, seconds):
    found, decided, raised = collections.defaultdict(list), 0, 0
    for case in made:
        one, other = theirs[case["id"]], ours[case["id"]]
        raised += "raises" in one
        decided += "undecided" not in other
        if arguments.only is not None:
            print(json.dumps(case, indent=1, ensure_ascii=False), one, other, sep="\n")
        if not is_same(case, one, other):
            found[known(case, theirs, ours)].append(case["id"])
    per = collections.Counter(f"{case['benchmark']} {case['kind']}" for case in made)
    for kind, count in sorted(per.items()):
        print(f"  {count:6} {kind}")
    print(f"{len(made)} cases in {seconds:.0f} s; the benchmarks' code raises in {raised}, arenad decides {decided}")
    reasons = {name: reason for name, reason, _ in CLASSES}
    by_id = {case["id"]: case for case in made}
    for name, numbers in sorted(found.items(), key=lambda pair: (pair[0] is None, pair[0] or "")):
        undecided = sum("undecided" in ours[number] for number in numbers)
        print(f"{name or 'NOT KNOWN'}: {len(numbers)} cases, {undecided} of them undecided. {reasons.get(name, '')}")
        shown = numbers[: arguments.examples] if name else numbers[: 20 * arguments.examples]
        for number in shown:
            show(by_id[number], theirs, ours)
    unknown = len(found.get(None, []))
    accepted = sum(len(numbers) for name, numbers in found.items() if name)
    print(f"seed {arguments.seed}: {len(made) - unknown - accepted} alike, {accepted} of known classes, {unknown} others")
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()
