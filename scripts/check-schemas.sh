#!/bin/sh
# Compares the JSON Schemas in schemas/ with those that the types yield; --write brings them up to date.
set -eu

cd "$(dirname -- "$0")/.."
mkdir -p schemas
bad=0
for file in environment compose tasks; do
    cargo run --quiet --locked -- schema "$file" >"schemas/$file.json.new"
    if [ "${1:-}" = --write ]; then
        mv "schemas/$file.json.new" "schemas/$file.json"
    elif cmp -s "schemas/$file.json" "schemas/$file.json.new"; then
        rm "schemas/$file.json.new"
    else
        rm "schemas/$file.json.new"
        echo "schemas/$file.json is stale: \`make schemas\` writes it anew" >&2
        bad=1
    fi
done
exit "$bad"
