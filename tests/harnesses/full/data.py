"""Lays NLTK's sentence model and tiktoken's encodings, which their packages would download from elsewhere, into a folder.

Usage: data.py WHEEL FOLDER, with the wheel of llama-index-core, which contains both.
"""

import sys
import zipfile
from pathlib import Path

STATIC = "llama_index/core/_static/"
WANTED = ("nltk_cache/tokenizers/punkt_tab/english/", "tiktoken_cache/")


def main(wheel: str, folder: str) -> None:
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        for part in WANTED:
            if name.startswith(STATIC + part) and not name.endswith("/"):
                file = Path(folder) / name.removeprefix(STATIC)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
    for part in WANTED:
        if not any((Path(folder) / part).iterdir()):
            sys.exit(f"data.py: {wheel} has no {part}")


if __name__ == "__main__":
    main(*sys.argv[1:])
