#!/bin/sh
# `make test`: prepares the machine and builds the images of the mini environment in the background, checks the code and
# compiles the tests meanwhile, and then runs them.
#
# Packages and images mostly need the network and lints and compilers the processors, so they share a small machine well.
# The output of the builds of images goes to target/test/images.log.
set -eu

cd "$(dirname -- "$0")/.."
# shellcheck source=scripts/lib/images.sh
. scripts/lib/images.sh
# A shell that was open when rustup was installed may not have rustup's folder on its PATH.
[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
: "${CARGO:=cargo}"
logs=${CARGO_TARGET_DIR:-target}/test
mkdir -p "$logs"

say() { echo "test: $*" >&2; }

# Each part needs the one before it. A failure of one of the builds is not one of the preparation: the test that needs the
# image builds it too, and shows why it fails.
prepare() {
    scripts/host-tools.sh && scripts/engine.sh && scripts/base-image.sh && scripts/test-tools.sh || return 1
    images_are_here || scripts/images-ahead.sh >"$logs/images.done" 2>"$logs/images.log" ||
        say "not all images could be built ahead; see $logs/images.log"
}

prepare &
machine=$!
# shellcheck disable=SC2317,SC2329 # called by the trap
end() { [ -z "$machine" ] || kill "$machine" 2>/dev/null || true; }
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The durations of the steps are part of the output of the tests.
begun=$(date +%s)
took() { # what
    now=$(date +%s)
    ARENAD_TEST_TIMES="${ARENAD_TEST_TIMES:-}$1 $((now - begun)) s; "
    begun=$now
}

# The lints are checked beside the tests; see scripts/test.sh.
make check-texts
took checks
# A test that does not compile is counted by the run below.
"$CARGO" test --workspace --locked --no-run || true
took compilation
wait "$machine" || { machine=; say "the machine could not be prepared"; exit 1; }
machine=
took "rest of the preparation"
export ARENAD_TEST_TIMES
scripts/test.sh
