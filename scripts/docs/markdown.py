"""Parses the parts of Markdown that the checks need: headings with their anchors, links, code blocks, code spans."""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^)]*\))?)\)")
MARK = re.compile(r"^<!--\s*(.*?)\s*-->$")
SPAN = re.compile(r"`+")


@dataclass
class Block:
    """A code block: its language, its text, the number of its first line, and the comment before it."""

    language: str
    text: str
    line: int
    mark: str


@dataclass
class Page:
    """The parts of a Markdown file. Lines are counted from 1."""

    path: Path
    anchors: set[str]
    links: list[tuple[int, str]]
    blocks: list[Block]
    spans: list[tuple[int, str]]


def slug(title: str) -> str:
    """Returns the anchor of a heading, as GitHub generates it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def read(path: Path) -> Page:
    """Reads and parses a Markdown file."""
    page = Page(path, set(), [], [], [])
    lines = path.read_text(encoding="utf-8").split("\n")
    prose: list[tuple[int, str]] = []
    mark = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = FENCE.match(line)
        if fence:
            indent, ticks, language = len(fence[1]), fence[2], fence[3].strip()
            first = at + 2
            body = []
            at += 1
            while at < len(lines) and not re.match(rf"^ {{0,3}}{ticks[0]}{{{len(ticks)},}}\s*$", lines[at]):
                body.append(lines[at][indent:] if lines[at][:indent].strip() == "" else lines[at])
                at += 1
            page.blocks.append(Block(language, "\n".join(body) + "\n", first, mark))
            mark = ""
        elif line.startswith("    ") and not (prose and prose[-1][1].strip()):
            # An indented line is code, or an item of a nested list. Items are prose.
            if re.match(r"^\s+([-*]|\d+\.) ", line):
                prose.append((at + 1, line))
        else:
            heading = HEADING.match(line)
            if heading:
                anchor = slug(heading[2])
                number = 1
                while anchor in page.anchors:
                    anchor = f"{slug(heading[2])}-{number}"
                    number += 1
                page.anchors.add(anchor)
            comment = MARK.match(line)
            if line.strip():
                mark = comment[1] if comment else ""
            prose.append((at + 1, line))
        at += 1
    text = "\n".join(line for _, line in prose)
    numbers = [number for number, _ in prose]
    read_spans(page, text, numbers)
    return page


def read_spans(page: Page, text: str, numbers: list[int]) -> None:
    """Reads the code spans of a page, which may continue over the end of a line and contain no links."""
    plain = []
    at = 0
    while True:
        opened = SPAN.search(text, at)
        if not opened:
            plain.append(text[at:])
            break
        closed = re.compile(rf"(?<!`){opened[0]}(?!`)").search(text, opened.end())
        plain.append(text[at : opened.start()])
        # A code span ends with its paragraph at the latest.
        if not closed or "\n\n" in text[opened.end() : closed.start()]:
            plain.append(opened[0])
            at = opened.end()
            continue
        inside = text[opened.end() : closed.start()]
        page.spans.append((numbers[text.count("\n", 0, opened.start())], " ".join(inside.split())))
        plain.append("x" + "\n" * inside.count("\n"))
        at = closed.end()
    rest = "".join(plain)
    for found in LINK.finditer(rest):
        page.links.append((numbers[rest.count("\n", 0, found.start())], found[1]))
