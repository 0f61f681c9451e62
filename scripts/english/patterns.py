"""The patterns that we fell into, each with what to write instead. None of them may hit a sentence that is right as it stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prose import Text


@dataclass
class Hit:
    """A place that a reader would stumble over."""

    line: int
    pattern: str
    found: str


ADVICE = {
    "headless": "name the thing as the subject: not `What nothing has reached stands by`, but `A generation without connections …`",
    "whoever": "name who it is: the caller, the client, the operator",
    "nobody": "`no one`, or better the thing: `no client`, `no process`",
    "somebody": "`someone`, or better the thing: `a client`, `another process`",
    "is-no": "`is not a …`, or say what is wrong: `unknown locator kind \"x\"`, `invalid name \"x\"`",
    "let": "`may`, `is allowed to`, `is admitted`",
    "of-the-past": "`earlier`, `previous`, `old`: `connections to the old container`",
    "for-want-of": "`because there is no …`: `exited with code 137 (out of memory)`",
    "short-doc": "a doc comment of three words or fewer: say what the name does not, or leave it out",
}

# A sentence begins at the beginning, or behind an end of one.
SENTENCE = re.compile(r"(?:^|(?<=[.!?:;])\s+|\n\s*\n\s*|\n\s*[-*]\s+)(?:[*_]{0,2})(?P<first>What|Whatever|Who|Whoever|Whose|Whom|That which|Those who)\b(?P<rest>[^.?!]*)(?P<end>[.?!]|$)")

WORDS = {
    "whoever": re.compile(r"\b[Ww]hoever\b"),
    # The account of that name is one.
    "nobody": re.compile(r"(?<!user )(?<!account )(?<!group )(?<!name )\b[Nn]obody\b(?!:)"),
    "somebody": re.compile(r"\b[Ss]omebody\b"),
    "is-no": re.compile(
        r"(?<!here )(?<!here, )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b|older\b|newer\b|larger\b|smaller\b|"
        r"faster\b|slower\b|better\b|worse\b|different\b|good\b|need\b|exception\b|one\b|doubt\b|match\b|further\b)[`a-zA-Z]"
    ),
    "let": re.compile(r"\b(?:is|are|was|were|be|been|being) let\b(?! (?:in|out|go|off|through|down|alone)\b)"),
    "of-the-past": re.compile(r"\bof the past\b"),
    "for-want-of": re.compile(r"\bfor want of\b"),
}

UNIT = re.compile(r"\b(?:bytes|seconds|milliseconds|microseconds|UTC|per)\b")
CODE = re.compile(r"`[^`\n]*`")


def hits(text: Text) -> Iterator[Hit]:
    """The places of a text, in no order."""
    # What stands in code is not prose; its length stays.
    plain = CODE.sub(lambda code: "`" + "x" * (len(code[0]) - 2) + "`", text.text)
    if text.kind != "string":
        for found in SENTENCE.finditer(plain):
            if found["end"] != "?":
                yield Hit(text.line_of(found.start("first")), "headless", excerpt(text.text, found.start("first")))
    for name, pattern in WORDS.items():
        for found in pattern.finditer(plain):
            yield Hit(text.line_of(found.start()), name, excerpt(text.text, found.start()))
    words = re.findall(r"[\w`'’.:/-]+", text.text)
    # A unit is worth a line; a link and a value in code say more than their words.
    is_short = 0 < len(words) <= 3 and not text.text.lstrip().startswith(("#", "[", "`")) and not UNIT.search(text.text)
    if text.kind == "doc" and is_short:
        yield Hit(text.line, "short-doc", text.text.strip())


def excerpt(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1 if at - text.rfind("\n", 0, at) < 40 else at - 40
    return " ".join(text[begin : at + 60].split())
