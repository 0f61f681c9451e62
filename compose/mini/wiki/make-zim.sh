#!/bin/sh
# Writes the pages, packs them with a full-text index and verifies the file.
set -eu
source=$1 target=$2
mkdir -p "$target"
cd "$source"
python3 -m wiki world.json html
zimwriterfs --welcome=A/Larkmoor_County.html --illustration=icon.png --language=eng --title="Wikipedia" \
    --description="The free encyclopedia of Larkmoor County" --creator="arenad" --publisher="arenad" --name=arena_en_all \
    --source="world.json" html "$target/arena_en_all.zim"
zimcheck --integrity --metadata --main --favicon --url_internal --redirect_loop --empty "$target/arena_en_all.zim"
zimsearch "$target/arena_en_all.zim" "clock tower" | grep -q "Clock Tower" || { echo "the full-text search finds nothing" >&2; exit 1; }
