#!/bin/sh
# Checks the documents against the code: links, code blocks, commands, generated pages, and lists that must be complete.
# `--write` updates the generated pages. ARENAD names the program; without it, the program of the tests is built.
set -eu

cd "$(dirname -- "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh

if ! command -v python3 >/dev/null 2>&1 || ! python3 -c 'import yaml' 2>/dev/null; then
    can_install || { echo "check-docs: install python3 and python3-yaml" >&2; exit 1; }
    install_packages check-docs python3 python3-yaml
fi
if [ -z "${ARENAD:-}" ]; then
    # Builds as the tests do: `cargo run` would rebuild most dependencies with other features. `scripts` is the smallest
    # test program.
    "${CARGO:-cargo}" test --quiet --locked --no-run --test scripts
    ARENAD=${CARGO_TARGET_DIR:-target}/debug/arenad
fi
export ARENAD
python3 -B -m unittest discover --quiet -s scripts/docs 2>"${TMPDIR:-/tmp}/check-docs.$$" || {
    cat "${TMPDIR:-/tmp}/check-docs.$$" >&2
    rm -f "${TMPDIR:-/tmp}/check-docs.$$"
    exit 1
}
rm -f "${TMPDIR:-/tmp}/check-docs.$$"
exec python3 -B scripts/docs/check.py "$@"
