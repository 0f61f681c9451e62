#!/bin/sh
# Installs packages of harnesses from PyPI, and prints the Python program that has them.
#
# Without an argument: what tests/harnesses uses, in a minute. With --full: BrowserGym and AgentLab complete enough to
# run their own loops (tests/harnesses/full), without the models and training frameworks that they depend on too. With
# --handlers: Inspect AI and Harbor (tests/harnesses/handlers), which need Python 3.12.
#
# With --openenv: the client and the validator of OpenEnv, without its user interface (tests/harnesses/openenv).
#
# With --trainers: NeMo Gym, without its data sets, experiment trackers and model servers (tests/harnesses/trainers).
# With --verifiers: verifiers and the client of OpenEnv. With --trl: TRL, PyTorch (several GB) and the client of OpenEnv.
# All three need Python 3.12.
#
# Each set of versions has a folder of its own in target/harnesses. ARENAD_HARNESSES_DIR names another folder than that.
set -eu

cd "$(dirname -- "$0")/.."
case ${1:-} in
    '') lists=tests/harnesses; name= ;;
    --full) lists=tests/harnesses/full; name=full- ;;
    --handlers) lists=tests/harnesses/handlers; name=handlers- ;;
    --openenv) lists=tests/harnesses/openenv; name=openenv- ;;
    --trainers) lists=tests/harnesses/trainers; name=trainers- ;;
    --verifiers) lists=tests/harnesses/verifiers; name=verifiers- ;;
    --trl) lists=tests/harnesses/trl; name=trl- ;;
    *) echo "usage: scripts/harnesses.sh [--full | --handlers | --openenv | --trainers | --trl | --verifiers]" >&2; exit 2 ;;
esac
python=${ARENAD_HARNESSES_PYTHON:-python3}
case $name in handlers- | trainers- | trl- | verifiers-)
    python=
    # pyenv has a program for each version that it knows, which fails if the version is not chosen.
    for known in "${ARENAD_HARNESSES_PYTHON:-}" python3 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[23].*/bin/python; do
        if [ -n "$known" ] && "$known" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
            python=$known
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "harnesses: $1 needs Python 3.12; install it, or set ARENAD_HARNESSES_PYTHON to one" >&2
        exit 2
    fi
    ;;
esac
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
    [ ! -s $lists/packages.txt ] || $pip install --no-deps -r $lists/packages.txt >&2
    if [ "$name" = full- ]; then
        $pip download --no-deps --dest "$dir" llama-index-core==0.12.52 >&2
        "$dir/bin/python" $lists/data.py "$dir"/llama_index_core-*.whl "$dir/data" >&2
        rm "$dir"/llama_index_core-*.whl
    fi
    touch "$dir/.ready"
fi
echo "$dir/bin/python"
