#!/bin/sh
# Fuzzes with optimized code: each target for ARENAD_FUZZ_SECONDS (default five minutes), with new inputs in each run.
# Arguments are passed to cargo.
set -eu

cd "$(dirname -- "$0")/.."
: "${ARENAD_FUZZ_SECONDS:=300}" "${ARENAD_FUZZ_SEED:=random}"
# Checks for overflow and debug assertions stay on in arenad's own code, because fuzzing looks for their failures. The
# dependencies are those of the tests' profile.
CARGO_PROFILE_DEV_OPT_LEVEL=1
CARGO_INCREMENTAL=0
export ARENAD_FUZZ_SECONDS ARENAD_FUZZ_SEED CARGO_PROFILE_DEV_OPT_LEVEL CARGO_INCREMENTAL
exec "${CARGO:-cargo}" test --locked --test fuzz "$@"
