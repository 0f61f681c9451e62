#!/bin/sh
# Runs every test and ends with one line: N passed, N failed.
set -eu

cd "$(dirname -- "$0")/.."
out=$(mktemp)
status_file=$(mktemp)
trap 'rm -f "$out" "$status_file"' EXIT

# The pipe would swallow cargo's exit code.
{
    code=0
    cargo test --locked --no-fail-fast "$@" 2>&1 || code=$?
    echo "$code" >"$status_file"
} | tee "$out"

passed=$(awk '/^test result:/ { n += $4 } END { print n + 0 }' "$out")
failed=$(awk '/^test result:/ { n += $6 } END { print n + 0 }' "$out")
code=$(cat "$status_file")
# A target that does not compile, or ends by a signal, has no result line of its own.
if [ "$code" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
if [ "$passed" = 0 ] && [ "$code" = 0 ]; then
    echo "no test was run" >&2
    code=1
fi
echo "$passed passed, $failed failed"
exit "$code"
