#!/bin/sh
# Counts sentences that a native technical writer would not write, in comments, messages and documents. The counts of each
# folder are compared with scripts/english/allowed.txt, whose numbers may only fall.
#
#   scripts/check-english.sh                fails where a folder has more than it is allowed
#   scripts/check-english.sh --list PATH    prints every hit below a path, with what to write instead
#   scripts/check-english.sh --lower        writes lower numbers where there are fewer hits now; never a higher one
#   scripts/check-english.sh --rebase       writes all numbers as they are; for moves of folders, and for nothing else
set -eu

cd "$(dirname -- "$0")/.."
command -v python3 >/dev/null 2>&1 || { echo "check-english: install python3" >&2; exit 1; }
said=$(mktemp)
trap 'rm -f "$said"' EXIT
python3 -B -m unittest discover --quiet -s scripts/english 2>"$said" || { cat "$said" >&2; exit 1; }
python3 -B scripts/english/check.py "$@"
