#!/bin/sh
# Installs the packages of harnesses that tests/harnesses uses from PyPI, and prints the Python program that has them.
#
# Each set of versions has a folder of its own in target/harnesses. ARENAD_HARNESSES_DIR names another folder than that.
set -eu

cd "$(dirname -- "$0")/.."
python=${ARENAD_HARNESSES_PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
pins=$(cat tests/harnesses/requirements.txt tests/harnesses/packages.txt | sha256sum | cut -c 1-12)
folder=${ARENAD_HARNESSES_DIR:-${CARGO_TARGET_DIR:-target}/harnesses}
mkdir -p "$folder"
dir=$(cd "$folder" && pwd)/$version-$pins

# Tests that run at the same time install once.
exec 9>"$folder/lock"
flock 9
if [ ! -e "$dir/.ready" ]; then
    rm -rf "$dir"
    "$python" -m venv "$dir" >&2
    pip="$dir/bin/pip --quiet --disable-pip-version-check"
    $pip install -r tests/harnesses/requirements.txt >&2
    # Their other dependencies (models, training frameworks, ray) have nothing to do with resets.
    $pip install --no-deps -r tests/harnesses/packages.txt >&2
    touch "$dir/.ready"
fi
echo "$dir/bin/python"
