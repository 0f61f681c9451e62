#!/bin/sh
# Provides the map data: extract.sh NAME TARGET. NAME is a file in extract/, or empty for the fictional county.
set -eu
name=$1 target=$2
cd /build
if [ -z "$name" ]; then
    python3 -B -m larkmoor world.json "$target"
    exit
fi
[ -f "extract/$name" ] || {
    echo "MAP_PBF=$name: compose/mini/map/extract has no such file; put an .osm.pbf there and give its name alone" >&2
    exit 1
}
cp "extract/$name" "$target"
