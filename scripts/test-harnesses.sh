#!/bin/sh
# `make test-harnesses`: checks the types of the Python client, and runs BrowserGym, AgentLab, Inspect AI, Harbor, NeMo
# Gym, verifiers and TRL themselves, from PyPI, with scripted agents on sites of `mini` or on a toy site. Arguments are
# passed to pytest.
#
# Environment: ARENAD_BIN, the program to test (default: a debug build); ARENAD_STORAGE (default: plain).
set -eu

cd "$(dirname -- "$0")/.."
python=$(scripts/harnesses.sh --full)
dir=$(dirname -- "$(dirname -- "$python")")
if [ -z "${ARENAD_BIN:-}" ]; then
    # The trainers' tests need this build too. `cargo build` alone would compile everything once more, with other features.
    ${CARGO:-cargo} test --workspace --locked --no-run
    ARENAD_BIN=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/debug/arenad
fi
export ARENAD_BIN

# The client promises to be typed for each version of Python that it supports.
for version in 3.10 3.11 3.12 3.13; do
    "$dir/bin/mypy" --config-file clients/python/pyproject.toml --python-version "$version" clients/python/src
done
"$dir/bin/pyright" --project clients/python --pythonpath "$python"

# Playwright starts the browser of this machine in place of its own, which it would have to download.
chromium=$(command -v chromium) || { echo "test-harnesses: no chromium; scripts/test-tools.sh installs it" >&2; exit 2; }
export PLAYWRIGHT_BROWSERS_PATH="$dir/browsers"
revision=$("$python" -c '
import json, pathlib, playwright
known = json.loads((pathlib.Path(playwright.__file__).parent / "driver/package/browsers.json").read_text())
print(next(browser["revision"] for browser in known["browsers"] if browser["name"] == "chromium"))')
mkdir -p "$PLAYWRIGHT_BROWSERS_PATH/chromium-$revision/chrome-linux"
ln -sf "$chromium" "$PLAYWRIGHT_BROWSERS_PATH/chromium-$revision/chrome-linux/chrome"

export NLTK_DATA="$dir/data/nltk_cache" TIKTOKEN_CACHE_DIR="$dir/data/tiktoken_cache"
export AGENTLAB_EXP_ROOT="$dir/results" PYTHONDONTWRITEBYTECODE=1
root=$(pwd)
source=$root/clients/python/src:$root/tests/harnesses

# NeMo Gym, verifiers and TRL, on a toy site.
for trainer in trainers verifiers trl; do scripts/harnesses.sh "--$trainer" >/dev/null; done
${CARGO:-cargo} test --workspace --locked --test integration -- --ignored clients::trainers::

handlers=$(dirname -- "$(scripts/harnesses.sh --handlers)")
PYTHONPATH="$source:$root/tests/harnesses/handlers" \
    "$handlers/pytest" -c tests/harnesses/handlers/pytest.ini tests/harnesses/handlers "$@"

PYTHONPATH="$source:$root/tests/harnesses/full" \
    exec "$dir/bin/pytest" -c tests/harnesses/full/pytest.ini tests/harnesses/full "$@"
