#!/bin/sh
# Installs packages of harnesses from PyPI, and prints the Python program that has them.
#
# Without an argument: what tests/harnesses uses, in a minute. With --full: BrowserGym and AgentLab complete enough to
# run their own loops (tests/harnesses/full), without the models and training frameworks that they depend on too.
#
# With --openenv: the client of OpenEnv, without its hub, its user interface and its model clients (tests/harnesses/openenv).
#
# Each set of versions has a folder of its own in target/harnesses. ARENAD_HARNESSES_DIR names another folder than that.
set -eu

cd "$(dirname -- "$0")/.."
case ${1:-} in
    '') lists=tests/harnesses; name= ;;
    --full) lists=tests/harnesses/full; name=full- ;;
    --openenv) lists=tests/harnesses/openenv; name=openenv- ;;
    *) echo "usage: scripts/harnesses.sh [--full | --openenv]" >&2; exit 2 ;;
esac
python=${ARENAD_HARNESSES_PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
pins=$(cat $lists/requirements.txt $lists/packages.txt | sha256sum | cut -c 1-12)
folder=${ARENAD_HARNESSES_DIR:-${CARGO_TARGET_DIR:-target}/harnesses}
mkdir -p "$folder"
dir=$(cd "$folder" && pwd)/$name$version-$pins

# Tests that run at the same time install once.
exec 9>"$folder/lock"
flock 9
if [ ! -e "$dir/.ready" ]; then
    rm -rf "$dir"
    "$python" -m venv "$dir" >&2
    pip="$dir/bin/pip --quiet --disable-pip-version-check"
    $pip install -r $lists/requirements.txt >&2
    # Their other dependencies (models, training frameworks, ray) have nothing to do with resets and episodes.
    $pip install --no-deps -r $lists/packages.txt >&2
    if [ "$name" = full- ]; then
        $pip download --no-deps --dest "$dir" llama-index-core==0.12.52 >&2
        "$dir/bin/python" $lists/data.py "$dir"/llama_index_core-*.whl "$dir/data" >&2
        rm "$dir"/llama_index_core-*.whl
    fi
    touch "$dir/.ready"
fi
echo "$dir/bin/python"
