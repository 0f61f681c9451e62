#!/bin/sh
# Builds the image of the browser that `js:` locators use on hosts without Chromium. Does nothing if the image exists
# and was built from the same files.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
name=arenad-browser:2
if [ -f "$root/compose/.env" ]; then
    BASE_IMAGE=${BASE_IMAGE:-$(sed -n 's/^BASE_IMAGE=//p' "$root/compose/.env")}
fi
base=${BASE_IMAGE:-debian:bookworm-slim}
inputs=$( (echo "$base"; cat "$root/compose/browser/Dockerfile" "$root/compose/browser/run") | sha256sum | cut -c1-16)
found=$(docker image inspect --format '{{index .Config.Labels "dev.arenad.inputs"}}' "$name" 2>/dev/null || true)
[ "$found" != "$inputs" ] || exit 0
echo "browser image: building $name from $base" >&2
docker build --quiet --build-arg "BASE_IMAGE=$base" --label "dev.arenad.inputs=$inputs" --tag "$name" "$root/compose/browser" >/dev/null
