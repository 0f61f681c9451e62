import json
import sys
from pathlib import Path

from work import museums, reviews


def main(world_file, target):
    world = json.loads(Path(world_file).read_text(encoding="utf-8"))
    for part in (museums, reviews):
        part.write(world, Path(target))


main(*sys.argv[1:])
