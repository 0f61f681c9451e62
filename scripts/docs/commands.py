"""Finds the commands of arenad in shell text, and checks each of them with the program itself.

With `--help` after a command's arguments the program stops before it acts. By then it has parsed the subcommand, every
option and every value, and it refuses those that it does not know.
"""

import os
import re
import shlex
import subprocess

ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
ENDS = {"|", "||", "&&", ";", "&", "(", ")", "{", "}", "then", "do", "else", "!"}
REDIRECTION = re.compile(r"^\d*[<>]")


def environment() -> dict[str, str]:
    """Returns the process's variables without those that the program would show as a value or use as one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENAD_") and name != "DOCKER_HOST"}
    return kept | {"COLUMNS": "100", "LC_ALL": "C.UTF-8"}


def words(line: str) -> list[str]:
    """Splits a line of shell into words; operators are separate words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return list(lexer)


def commands(text: str) -> list[tuple[int, list[str]]]:
    """Returns the argument lists of every command `arenad` in a script, each with the line on which it begins, counted
    from 0."""
    found = []
    held, first = "", 0
    for number, line in enumerate(text.split("\n")):
        first = first if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        line, held, number = held + line, "", first
        inner = re.findall(r"\$\(([^()]*)\)", line)
        for part in [re.sub(r"\$\([^()]*\)", "x", line), *inner]:
            found += [(number, arguments) for arguments in of_line(part)]
    return found


def of_line(line: str) -> list[list[str]]:
    if "arenad" not in line:
        return []
    try:
        given = words(line)
    except ValueError:
        return []
    found, at_start, arguments, skips = [], True, None, False
    for word in given:
        if skips:
            skips = False
        elif word in ENDS or set(word) <= set("();|&"):
            arguments, at_start = None, True
        elif REDIRECTION.match(word):
            skips = True
        elif arguments is not None:
            arguments.append(word)
        elif at_start and ASSIGNMENT.match(word):
            pass
        elif at_start and word in ("sudo", "exec", "trap"):
            pass
        elif at_start and (word == "arenad" or word.endswith("/arenad")):
            arguments = []
            found.append(arguments)
        elif at_start and word.startswith("arenad "):
            found += of_line(word)
            at_start = False
        else:
            at_start = False
    return found


def refusal(program: str, arguments: list[str]) -> str | None:
    """Returns the program's reason for refusing the arguments, or `None` if it accepts them."""
    if arguments[:1] == ["help"] or arguments[-1:] in (["--help"], ["-h"], ["--version"]):
        given = arguments
    else:
        # The words after `--` are a command of their own, which would be executed.
        own = arguments.index("--") if "--" in arguments else len(arguments)
        given = [*arguments[:own], "--help"]
    ran = subprocess.run([program, *given], capture_output=True, text=True, env=environment(), timeout=60, check=False)
    if ran.returncode == 0:
        return None
    return " ".join(ran.stderr.split())[:300]
