#!/usr/bin/env python3
"""Checks the documents against the code. `scripts/check-docs.sh` calls it; docs/development/testing.md lists the checks."""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import unquote

import yaml

import commands
import generate
import markdown

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages of which only the links are checked: their text describes earlier versions or other parts of the tree.
LINKS_ONLY = ("CHANGELOG.md", "tests/", "compose/", "crates/", "src/")

problems: list[str] = []


def wrong(path: Path, line: int, what: str) -> None:
    problems.append(f"{path.relative_to(ROOT)}:{line}: {what}")


def tracked() -> list[Path]:
    """Returns the Markdown files of the working tree, including uncommitted ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    return sorted(ROOT / name for name in set(listed) if (ROOT / name).is_file() and "tests/fixtures" not in name)


def check_links(pages: dict[Path, markdown.Page]) -> None:
    for path, page in pages.items():
        for line, target in page.links:
            if re.match(r"^[a-z]+:", target):
                continue
            name, _, fragment = unquote(target).partition("#")
            leads_to = (path.parent / name).resolve() if name else path
            if not leads_to.exists():
                wrong(path, line, f"the link {target} leads nowhere")
            elif fragment and leads_to.suffix == ".md":
                anchors = (pages.get(leads_to) or markdown.read(leads_to)).anchors
                if fragment not in anchors:
                    wrong(path, line, f"no heading of {name or path.name} has the anchor #{fragment}")


def check_summary(pages: dict[Path, markdown.Page]) -> None:
    summary = DOCS / "SUMMARY.md"
    listed = [(summary.parent / target).resolve() for _, target in pages[summary].links]
    for path in pages:
        if path.is_relative_to(DOCS) and path != summary and path not in listed:
            wrong(path, 1, "docs/SUMMARY.md does not list this page")
    for path in sorted({path for path in listed if listed.count(path) > 1}):
        wrong(summary, 1, f"{path.relative_to(DOCS)} is listed twice")


def check_blocks(program: str, page: markdown.Page) -> None:
    for block in page.blocks:
        if block.language == "json":
            try:
                json.loads(block.text)
            except ValueError as error:
                wrong(page.path, block.line, f"the JSON does not parse: {error}")
        elif block.language in ("yaml", "yml"):
            try:
                list(yaml.safe_load_all(block.text))
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                at = block.line + (mark.line if mark else 0)
                wrong(page.path, at, f"the YAML does not parse: {' '.join(str(error).split())}")
        elif block.language == "python":
            try:
                compile(block.text, str(page.path), "exec")
            except SyntaxError as error:
                wrong(page.path, block.line + (error.lineno or 1) - 1, f"the Python does not parse: {error.msg}")
        elif block.language == "sh":
            ran = subprocess.run(["sh", "-n"], input=block.text, capture_output=True, text=True, check=False)
            if ran.returncode:
                wrong(page.path, block.line, f"the shell does not parse: {ran.stderr.strip()}")
            for line, arguments in commands.commands(block.text):
                check_command(program, page.path, block.line + line, arguments)
        elif not block.language:
            wrong(page.path, block.line - 1, "the block names no language; `text` is one")
    for line, span in page.spans:
        if span.startswith("arenad ") and "…" not in span:
            for _, arguments in commands.commands(span.replace("|", "-or-")):
                check_command(program, page.path, line, arguments)


known: dict[tuple[str, ...], str | None] = {}


def check_command(program: str, path: Path, line: int, arguments: list[str]) -> None:
    # `COMMAND` is a placeholder for a subcommand.
    if "COMMAND" in arguments:
        return
    key = tuple(arguments)
    if key not in known:
        known[key] = commands.refusal(program, arguments)
    if known[key]:
        wrong(path, line, f"`arenad {' '.join(arguments)}`: {known[key]}")


def check_files(program: str, page: markdown.Page) -> None:
    """Writes the code blocks that are complete files into a folder and validates them with the program."""
    files = {block.mark.removeprefix("file: "): block for block in page.blocks if block.mark.startswith("file: ")}
    with tempfile.TemporaryDirectory() as folder:
        for name, block in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        for name, block in files.items():
            if not name.startswith("environments/"):
                continue
            given = ["tasks", "lint", str(Path(folder, name)), "--root", str(ROOT)] if "/tasks/" in name else [
                "validate", Path(name).stem, "--root", folder]
            ran = subprocess.run(
                [program, *given], capture_output=True, text=True, cwd=folder,
                env=commands.environment() | {"DB_PASSWORD": "secret"}, timeout=60, check=False,
            )
            if ran.returncode:
                wrong(page.path, block.line, f"arenad refuses the file: {' '.join((ran.stdout + ran.stderr).split())[:600]}")


def sources(suffix: str = ".rs") -> list[Path]:
    return [path for part in ("src", "crates") if (ROOT / part).is_dir() for path in sorted((ROOT / part).rglob(f"*{suffix}"))]


def same(page: Path, what: str, told: set[str], true: set[str]) -> None:
    for name in sorted(true - told):
        wrong(page, 1, f"{what} `{name}` is missing")
    for name in sorted(told - true):
        wrong(page, 1, f"{what} `{name}` does not exist")


def first_cells(path: Path) -> set[str]:
    """Returns the names between backticks in the first cells of a page's tables."""
    found: set[str] = set()
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("| `"):
            found |= set(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    return found


def check_codes() -> None:
    """Checks that the problem codes of the API agree in its source, in the reference and in Troubleshooting."""
    true = set()
    for path in sources():
        text = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        true |= set(re.findall(r"(?:ApiError|Self)::new\(\s*StatusCode::\w+,\s*\"([a-z_]+)\"", text))
    # The Python client defines some codes of its own.
    for path in (ROOT / "clients/python/src").rglob("*.py"):
        true |= set(re.findall(r"code=\"([a-z_]+)\"", path.read_text(encoding="utf-8")))
    if len(true) < 40:
        wrong(DOCS / "reference/problem-codes.md", 1, f"only {len(true)} problem codes were found in the source")
    same(DOCS / "reference/problem-codes.md", "the problem code", first_cells(DOCS / "reference/problem-codes.md"), true)
    cures = DOCS / "operations/troubleshooting.md"
    text = cures.read_text(encoding="utf-8")
    section = text[text.index("## Problem codes") : text.index("## Findings of the doctor")]
    same(cures, "the section about", set(re.findall(r"(?m)^### ([a-z_]+)$", section)), true)


def event_kinds(model: str, api: str) -> set[str]:
    """Returns the kinds of events in the sources: those that the daemon records, and the end of a stream."""
    recorded = set(re.findall(r"Self::\w+ => \"([a-z_.]+)\"", model))
    return recorded | set(re.findall(r"pub const GONE: &str = \"([a-z_.]+)\";", api))


def check_events() -> None:
    """Checks that the kinds of events agree in the source and in the reference."""
    page = DOCS / "reference/events.md"
    sources = (ROOT / "crates/model/src/event.rs", ROOT / "crates/api/src/lib.rs")
    true = event_kinds(*(path.read_text(encoding="utf-8") for path in sources))
    if len(true) < 30:
        wrong(page, 1, f"only {len(true)} kinds of events were found in the source")
    same(page, "the kind of event", first_cells(page), true)


def check_exit_codes() -> None:
    true = set()
    for path in sources():
        if path.name == "exit_code.rs":
            true |= set(re.findall(r"pub(?:\(\w+\))? const \w+: u8 = (\d+);", path.read_text(encoding="utf-8")))
    page = DOCS / "reference/exit-codes.md"
    told = set(re.findall(r"(?m)^\| (\d+) \|", page.read_text(encoding="utf-8")))
    same(page, "the exit code", told, true)


def check_dependencies() -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    true: set[str] = set(manifest.get("workspace", {}).get("dependencies", {}))
    for kind in ("dependencies", "dev-dependencies"):
        true |= set(manifest.get(kind, {}))
    true = {name for name in true if not name.startswith("arenad-")}
    page = DOCS / "development/dependencies.md"
    same(page, "the dependency", first_cells(page), true)


def check_variables() -> None:
    """Checks that the variables that the program itself reads are listed."""
    page = DOCS / "reference/variables.md"
    text = page.read_text(encoding="utf-8")
    true = set()
    for path in sources():
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        true |= set(re.findall(r"(?:env = |var_os\(|var\(|from_env\()\"(ARENAD_[A-Z_]+)\"", source))
    for name in sorted(true):
        if f"`{name}`" not in text:
            wrong(page, 1, f"the variable `{name}` is missing")


def check_map() -> None:
    """Checks that every crate has a row in the map, and that no other row looks like a crate's."""
    if not (ROOT / "crates").is_dir():
        return
    page = DOCS / "development/map.md"
    text = page.read_text(encoding="utf-8")
    table = text[text.index("| Crate |") :].split("\n\n")[0]
    told = set(re.findall(r"`([a-z][a-z-]*)`", " ".join(line.split(" | ")[0] for line in table.split("\n"))))
    same(page, "the crate", told, {path.name for path in (ROOT / "crates").iterdir() if (path / "Cargo.toml").is_file()})


def check_decisions() -> None:
    folder = DOCS / "development/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in sorted(folder.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        number = int(path.name[:4])
        if not text.startswith(f"# {number}. ") or not re.search(r"(?m)^Status: (accepted|proposed|superseded by \d+)$", text):
            wrong(path, 1, "a decision begins with `# NUMBER. Title` and has a line `Status: accepted`, or `superseded by NUMBER`")
        if f"({path.name})" not in index:
            wrong(folder / "README.md", 1, f"the index lacks {path.name}")


def check_paths(pages: dict[Path, markdown.Page]) -> None:
    """Checks that the files named in the documents exist. `gateway/recorder.rs` stands for the crate's
    `crates/gateway/src/recorder.rs`."""
    # The paths in the documents refer to the crates.
    if not (ROOT / "crates").is_dir():
        return
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    plain = ["/" + "/".join(part for part in name.split("/") if part not in ("crates", "src")) for name in listed if name]
    text = "\n".join(plain) + "\n"
    for path, page in pages.items():
        for line, span in page.spans:
            is_file = re.fullmatch(r"[\w.-]+(/[\w.-]+)+\.(rs|sh|py|sql)", span) or re.fullmatch(r"(tests|scripts|benches)/[\w./-]+", span)
            if not is_file or re.search(r"[A-Z]{2}", span):
                continue
            name = "/" + "/".join(part for part in span.rstrip("/").split("/") if part not in ("crates", "src"))
            if f"{name}\n" not in text and f"{name}/" not in text:
                wrong(path, line, f"there is no file `{span}`")


def check_lines(page: markdown.Page) -> None:
    in_block = False
    for number, line in enumerate(page.path.read_text(encoding="utf-8").split("\n"), 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_block = not in_block
        # Tables and long links cannot be broken.
        if len(line) > 100 and not in_block and not line.startswith("|") and " " in line[:100].strip() and "](" not in line:
            wrong(page.path, number, f"the line has {len(line)} characters, 100 at most")


def check_promises() -> None:
    """Checks that each promise of the page about security names a test, and that each named test exists."""
    page = DOCS / "operations/security.md"
    files = [str(path.relative_to(ROOT)) for part in ("tests", "crates", "src") for path in (ROOT / part).rglob("*")]
    short = {name.replace("/src/", "/") for name in files}
    code = [path.read_text(encoding="utf-8") for part in ("tests", "crates", "src") for path in (ROOT / part).rglob("*.rs")]
    in_table = False
    for line, text in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if not text.startswith("|"):
            in_table = False
        elif text.startswith("| Promise "):
            in_table = True
        elif in_table and not text.startswith("| ---"):
            last = text.strip("| ").split(" | ")[-1]
            names = re.findall(r"`([^`]+)`", last)
            if not names and last != "the same":
                wrong(page, line, "the promise names no test")
            for name in names:
                if "/" in name:
                    exists = any(f"/{file}".endswith(f"/{name}") for file in short)
                    # A source file of the program counts as a test only if it contains one.
                    if exists and name.endswith(".rs") and not name.startswith("tests/"):
                        held = [ROOT / file for file in files if f"/{file.replace('/src/', '/')}".endswith(f"/{name}")]
                        exists = any("#[test]" in path.read_text() or "#[tokio::test" in path.read_text() for path in held)
                else:
                    exists = f"tests/fuzz/targets/{name}.rs" in files or any(
                        re.search(rf"\bfn {re.escape(name)}\b", text) for text in code)
                if not exists:
                    wrong(page, line, f"there is no test `{name}`")


def main() -> int:
    program = os.environ.get("ARENAD") or str(ROOT / "target/debug/arenad")
    program = str(Path(program).resolve())
    made = generate.pages(ROOT, program)
    if "--write" in sys.argv[1:]:
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
    for path, text in made.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            problems.append(f"{path.relative_to(ROOT)} is stale: `scripts/check-docs.sh --write` writes it anew")
    pages = {path: markdown.read(path) for path in tracked()}
    check_links(pages)
    check_summary(pages)
    for path, page in pages.items():
        name = str(path.relative_to(ROOT))
        if name.startswith(LINKS_ONLY):
            continue
        if path not in made:
            check_lines(page)
        check_blocks(program, page)
        check_files(program, page)
    check_paths({path: page for path, page in pages.items() if not str(path.relative_to(ROOT)).startswith(LINKS_ONLY)})
    check_codes()
    check_events()
    check_exit_codes()
    check_dependencies()
    check_variables()
    check_map()
    check_decisions()
    check_promises()
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"check-docs: {len(problems)} problems", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
