#!/bin/sh
# Compares the JSON Schemas and the OpenAPI document in schemas/ with those that the types generate; --write updates them.
set -eu

cd "$(dirname -- "$0")/.."
mkdir -p schemas
bad=0
# Builds as the tests do: `cargo run` would rebuild most dependencies with other features. `scripts` is the smallest
# test program.
cargo test --quiet --locked --no-run --test scripts
arenad=${CARGO_TARGET_DIR:-target}/debug/arenad
for file in environment compose tasks openapi; do
    "$arenad" schema "$file" >"schemas/$file.json.new"
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
