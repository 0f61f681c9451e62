import json
import sys
from pathlib import Path

from wiki import lists, nature, pictures, places, scenes, society, streets
from wiki.page import Wiki


def main(world_file, target):
    world = json.loads(Path(world_file).read_text(encoding="utf-8"))
    wiki = Wiki(world)
    for part in (places, streets, nature, society, lists):
        part.write(wiki, world)
    folder = Path(target)
    wiki.save(folder)
    pictures.save(world, folder)
    scenes.save(world, folder / "I")
    print(f"{len(wiki.pages)} pages, {wiki.links} links")


main(*sys.argv[1:])
