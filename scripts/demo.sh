#!/bin/sh
# `make demo`: a scripted agent does three tasks on sites of `mini` that are up, in Chromium. Arguments, such as --headed,
# are passed to examples/demo.py; with make: `make demo DEMO=--headed`.
#
# Environment: DEMO_PYTHON, a Python program that has Playwright (default: one in target/demo, which is installed once);
# CHROMIUM, the browser (default: the one of this machine, else Playwright's own, which is downloaded once).
set -eu

cd "$(dirname -- "$0")/.."
python=${DEMO_PYTHON:-}
if [ -z "$python" ]; then
    dir=target/demo/python
    python=$dir/bin/python
    if [ ! -e "$dir/.ready" ]; then
        echo "demo: installing Playwright into $dir" >&2
        rm -rf "$dir"
        python3 -m venv "$dir" || { echo "demo: install python3-venv" >&2; exit 2; }
        "$dir/bin/pip" --quiet --disable-pip-version-check install playwright==1.55.0
        touch "$dir/.ready"
    fi
fi
if [ -z "${CHROMIUM:-}" ]; then
    CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    if [ -z "$CHROMIUM" ]; then
        "$python" -m playwright install chromium
        unset CHROMIUM
    else
        export CHROMIUM
    fi
fi
PYTHONPATH=$(pwd)/clients/python/src${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 exec "$python" examples/demo.py "$@"
