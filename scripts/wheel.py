#!/usr/bin/env python3
"""Makes the Python wheel that contains the program, the environments and the client: target/dist/arenad-*.whl.

A wheel is a zip file with a fixed layout (PEP 427), written here with the standard library alone, so that the same
inputs give the same bytes. The program is installed in `bin/`, environments and image sources in `share/arenad/` of the
same prefix, where the program looks for them.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import stat
import sys
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Zip files cannot hold times before 1980.
EPOCH = (1980, 1, 1, 0, 0, 0)
SHARED = ("environments", "compose", "schemas")
# Each folder below is a task that `arenad turkle load` has stored.
LOADED = pathlib.Path("environments/mini/turkle")


def glibc_needed(program: bytes) -> tuple[int, int]:
    """Returns the newest version of glibc whose symbols the program uses."""
    versions = [(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", program)]
    if not versions:
        sys.exit("wheel: the program names no version of glibc; is it a Linux program?")
    return max(versions)


def files_below(folder: pathlib.Path):
    """Returns files in a stable order, without the leftovers of programs."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc" and path.name != ".env":
            yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/arenad")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/dist")
    arguments = parser.parse_args()

    project = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    program = arguments.program.read_bytes()
    major, minor = glibc_needed(program)
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"{name}-{version}.dist-info"
    data = f"{name}-{version}.data"

    # Path in the wheel -> content and whether it is executable.
    members: dict[str, tuple[bytes, bool]] = {f"{data}/scripts/arenad": (program, True)}
    package = ROOT / "clients/python/src"
    for path in files_below(package):
        if ".egg-info" not in str(path):
            members[str(path.relative_to(package))] = (path.read_bytes(), False)
    for folder in SHARED:
        for path in files_below(ROOT / folder):
            if path.relative_to(ROOT).parent.parent == LOADED:
                continue
            executable = bool(path.stat().st_mode & stat.S_IXUSR)
            members[f"{data}/data/share/arenad/{path.relative_to(ROOT)}"] = (path.read_bytes(), executable)
    members[f"{info}/METADATA"] = (metadata(project), False)
    members[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: arenad\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        False,
    )
    members[f"{info}/entry_points.txt"] = (entry_points(project), False)
    members[f"{info}/licenses/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    record = f"{info}/RECORD"
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, (content, _) in members.items()]
    members[record] = ("\n".join([*lines, f"{record},,"]).encode() + b"\n", False)

    arguments.out.mkdir(parents=True, exist_ok=True)
    wheel = arguments.out / f"{name}-{version}-{tag}.whl"
    partial = wheel.with_suffix(f".{os.getpid()}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path, (content, executable) in members.items():
            member = zipfile.ZipInfo(path, EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(member, content)
    partial.rename(wheel)
    print(wheel)


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def entry_points(project: dict) -> bytes:
    """Returns the entry points, by which other programs find parts of the package, such as pytest its plug-in."""
    lines = []
    for group, entries in sorted(project.get("entry-points", {}).items()):
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in sorted(entries.items()))]
    return ("\n".join(lines) + "\n").encode()


def metadata(project: dict) -> bytes:
    """Returns the project's metadata, version 2.1, with the client's README as its description."""
    head = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
        *(f"Requires-Dist: {dependency}" for dependency in project.get("dependencies", [])),
    ]
    for extra, dependencies in sorted(project.get("optional-dependencies", {}).items()):
        head.append(f"Provides-Extra: {extra}")
        head += [f'Requires-Dist: {dependency}; extra == "{extra}"' for dependency in dependencies]
    readme = (ROOT / "clients/python" / project["readme"]).read_text()
    return ("\n".join(head) + "\n\n" + readme).encode()


if __name__ == "__main__":
    main()
