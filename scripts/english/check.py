#!/usr/bin/env python3
"""Compares the hits of each folder with what it is allowed. `scripts/check-english.sh` calls it."""

import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import patterns
import prose

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = ROOT / "scripts/english/allowed.txt"
# Data of tests, in whatever words they need; this check itself; texts of others.
LEFT_OUT = (
    "tests/definitions/", "tests/fixtures/", "tests/vectors/", "tests/fuzz/corpus/", "tests/differential/sentences.py",
    "scripts/english/", "LICENSE", "Cargo.lock",
)
SHOWN = 40


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode().split("\0")
    return sorted({name for name in listed if name and not name.startswith(LEFT_OUT) and (ROOT / name).is_file()})


def folder(name: str) -> str:
    """What shares a number: `crates/model`, `src/cli`, `docs/guides`, `.` for files at the top."""
    parts = name.split("/")[:-1]
    return "/".join(parts[:2]) or "."


def look(below: str = "") -> dict[str, list[tuple[str, patterns.Hit]]]:
    """The hits of each folder."""
    found: dict[str, list[tuple[str, patterns.Hit]]] = defaultdict(list)
    for name in files():
        if name != below and not name.startswith(below):
            continue
        for text in prose.of_file(ROOT / name, name):
            found[folder(name)] += [(name, hit) for hit in patterns.hits(text)]
    return found


def allowed() -> dict[str, int]:
    if not ALLOWED.is_file():
        return {}
    lines = (line.split("#")[0].split() for line in ALLOWED.read_text(encoding="utf-8").split("\n"))
    return {line[1]: int(line[0]) for line in lines if line}


def write(numbers: dict[str, int]) -> None:
    head = (
        "# How many places of each folder scripts/check-english.sh still accepts. The numbers may only fall: rewrite some\n"
        "# (scripts/check-english.sh --list FOLDER shows them), then scripts/check-english.sh --lower. A folder without a line has none.\n"
    )
    body = "".join(f"{count:5} {name}\n" for name, count in sorted(numbers.items()) if count)
    ALLOWED.write_text(head + body, encoding="utf-8")


def changed_lines() -> set[tuple[str, int]]:
    """The lines that differ from the last commit; where none do, those of the last commit. For the order of the list alone."""
    for base in ("HEAD", "HEAD~1"):
        ran = subprocess.run(["git", "diff", "-U0", "--no-color", base], cwd=ROOT, capture_output=True, text=True, check=False)
        lines, name = set(), ""
        for line in ran.stdout.split("\n"):
            if line.startswith("+++ b/"):
                name = line[6:]
            elif line.startswith("@@"):
                start, _, count = line.split("+")[1].split(" ")[0].partition(",")
                lines |= {(name, int(start) + offset) for offset in range(int(count or 1))}
        if lines:
            return lines
    return set()


def show(hits: list[tuple[str, patterns.Hit]], most: int) -> None:
    for name, hit in hits[:most]:
        print(f"{name}:{hit.line}: {hit.pattern}: {hit.found}")
    if len(hits) > most:
        print(f"... and {len(hits) - most} more")
    for pattern in dict.fromkeys(hit.pattern for _, hit in hits[:most]):
        print(f"  {pattern}: {patterns.ADVICE[pattern]}")


def main() -> int:
    given = sys.argv[1:]
    if given[:1] == ["--list"]:
        below = given[1].rstrip("/").removeprefix("./") if len(given) > 1 and given[1] != "." else ""
        path = ROOT / below
        found = look(below + "/" if path.is_dir() and below else below)
        hits = [hit for hits in found.values() for hit in hits]
        show(hits, len(hits))
        counts = Counter(hit.pattern for _, hit in hits)
        print(", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nothing")
        return 0
    found = look()
    counts = {name: len(hits) for name, hits in found.items()}
    if given == ["--rebase"]:
        write(counts)
        return 0
    limits = allowed()
    too_many = {name: count for name, count in counts.items() if count > limits.get(name, 0)}
    if given == ["--lower"]:
        write({name: min(limit, counts.get(name, 0)) for name, limit in limits.items()})
    elif given:
        print(f"check-english: unknown arguments {' '.join(given)}", file=sys.stderr)
        return 2
    changed = changed_lines() if too_many else set()
    for name, count in sorted(too_many.items()):
        print(f"\n{name}: {count} places, {limits.get(name, 0)} are allowed. Rewrite the new ones:")
        hits = sorted(found[name], key=lambda hit: (hit[0], hit[1].line) not in changed)
        new = [hit for hit in hits if (hit[0], hit[1].line) in changed]
        show(new or hits, SHOWN)
    lower = [name for name, limit in limits.items() if counts.get(name, 0) < limit]
    if lower and given != ["--lower"]:
        print(f"check-english: fewer places than allowed in {', '.join(sorted(lower))}: `scripts/check-english.sh --lower` notes it")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
