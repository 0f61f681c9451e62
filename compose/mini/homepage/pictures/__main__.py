import sys
from pathlib import Path

from pictures import papers, scenes


def main(target):
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    for part in (papers, scenes):
        for name, draw in part.PICTURES.items():
            draw().quantize(64).save(folder / f"{name}.png", optimize=True)


main(*sys.argv[1:])
