"""Takes the prose out of files: comments and string literals of programs, paragraphs of documents. Code is left out."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Text:
    """Prose that belongs together, with the number of its first line: a comment, a message, a paragraph."""

    line: int
    text: str
    # `doc` (of Rust), `docstring`, `comment`, `string`, `prose`, `cell`.
    kind: str

    def line_of(self, offset: int) -> int:
        return self.line + self.text.count("\n", 0, offset)


RUST = re.compile(
    r"""(?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<string>b?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])')
      | (?P<line>//[^\n]*)
      | (?P<block>/\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)


def rust(source: str) -> list[Text]:
    """Comments of adjacent lines are one text; doc comments are apart from others. Literals of two words and fewer are none."""
    found: list[Text] = []
    last_end = -1
    for token in RUST.finditer(source):
        number = source.count("\n", 0, token.start()) + 1
        text = token[0]
        if token["line"]:
            marker = re.match(r"//[/!]?", text)[0]
            kind = "comment" if marker == "//" or text.startswith("////") else "doc"
            body = text[len(marker) :].removeprefix(" ")
            between = source[last_end : token.start()] if last_end >= 0 else "x"
            before = found[-1] if found else None
            is_alone = source[source.rfind("\n", 0, token.start()) + 1 : token.start()].strip() == ""
            if before and before.kind == kind and is_alone and between.strip() == "" and between.count("\n") == 1:
                before.text += "\n" + body
            else:
                found.append(Text(number, body, kind))
            last_end = token.end()
        elif token["block"]:
            found.append(Text(number, text[2:-2], "comment"))
            last_end = -1
        elif token["string"] or token["raw"]:
            body = text[text.index('"') + 1 : text.rindex('"')]
            if token["string"]:
                # An escaped line break removes the spaces after it, but is kept as a line break here.
                body = re.sub(r"\\\n[ \t]*", "\n", body).replace("\\n", " ").replace('\\"', '"')
            if len(body.split()) > 2:
                found.append(Text(number, body, "string"))
            last_end = -1
    for text in found:
        if text.kind == "doc":
            text.text = without_blocks(text.text)
    return found


def without_blocks(text: str) -> str:
    """Blanks the fenced blocks, line by line, so that lines can still be counted."""
    lines, is_block = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            is_block = not is_block
            lines.append("")
        else:
            lines.append("" if is_block else line)
    return "\n".join(lines)


def python(source: str, with_strings: bool) -> list[Text]:
    """Comments, and docstrings; other literals where they are asked for."""
    found: list[Text] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        tree = ast.parse(source)
    except (SyntaxError, tokenize.TokenError):
        return found
    docs = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            expression = node.body[0].value
            docs.add(expression.lineno)
            found.append(Text(expression.lineno, expression.value, "docstring"))
    for token in tokens:
        if token.type == tokenize.COMMENT:
            body = token.string.lstrip("#").removeprefix(" ")
            if found and found[-1].kind == "comment" and found[-1].line_of(len(found[-1].text)) == token.start[0] - 1:
                found[-1].text += "\n" + body
            else:
                found.append(Text(token.start[0], body, "comment"))
        elif with_strings and token.type == tokenize.STRING and token.start[0] not in docs:
            body = re.sub(r"^[A-Za-z]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$", "", token.string)
            if len(body.split()) > 2:
                found.append(Text(token.start[0], body, "string"))
    return found


def hashed(source: str) -> list[Text]:
    """Comments of YAML and shell: whole lines, and what follows ` # ` or, in YAML, any value."""
    found: list[Text] = []
    for number, line in enumerate(source.split("\n"), 1):
        whole = re.match(r"^\s*#(?!!)\s?(.*)$", line)
        body = whole[1] if whole else (re.search(r"\s#\s(.*)$", line) or ["", ""])[1]
        if not body.strip():
            continue
        is_next = found and whole and found[-1].line_of(len(found[-1].text)) == number - 1
        if is_next:
            found[-1].text += "\n" + body
        else:
            found.append(Text(number, body, "comment"))
    return found


def markdown(source: str) -> list[Text]:
    """Paragraphs, items of lists and cells of tables; neither headings nor the heads of tables, which may be headless."""
    found: list[Text] = []
    lines = without_blocks(re.sub(r"<!--.*?-->", lambda mark: "\n" * mark[0].count("\n"), source, flags=re.DOTALL)).split("\n")
    for number, line in enumerate(lines, 1):
        following = lines[number] if number < len(lines) else ""
        if line.startswith(("#", "    ")) and not re.match(r"^\s+([-*]|\d+\.) ", line):
            continue
        if line.startswith("|"):
            if re.match(r"^[|\s:-]+$", line) or re.match(r"^\|[|\s:-]+$", following):
                continue
            # Cells are lines of their own, and the text is one line of the file.
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                found.append(Text(number, cell.strip(), "cell"))
            continue
        item = re.match(r"^\s*(?:[-*]|\d+\.)\s+(.*)$", line)
        is_next = found and found[-1].kind == "prose" and found[-1].line_of(len(found[-1].text)) == number - 1
        if item or not line.strip() or not is_next:
            if line.strip():
                found.append(Text(number, item[1] if item else line.strip(), "prose"))
        else:
            found[-1].text += "\n" + line.strip()
    return found


def of_file(path: Path, name: str) -> list[Text]:
    """The prose of a file, by the end of its name."""
    try:
        source = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return []
    # What the sites of mini say is the fictional world's.
    is_site = name.startswith("compose/")
    if name.endswith(".rs"):
        return rust(source)
    if name.endswith(".py") or source.startswith("#!/usr/bin/env python3"):
        return python(source, with_strings=not is_site)
    if name.endswith((".yaml", ".yml")):
        return hashed(source)
    if name.endswith(".md"):
        return [] if "<!-- Generated by" in source else markdown(source)
    if name.endswith((".sh", "Makefile", ".toml", "Dockerfile")) or source.startswith("#!/bin/sh"):
        return hashed(source)
    return []
