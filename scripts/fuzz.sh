#!/bin/sh
# Fuzzes with optimized code: each target for ARENAD_FUZZ_SECONDS, five minutes unless it says otherwise, on new inputs each time.
# Arguments go to cargo.
set -eu

cd "$(dirname -- "$0")/.."
: "${ARENAD_FUZZ_SECONDS:=300}" "${ARENAD_FUZZ_SEED:=random}"
# Overflows and failed assertions of our own code are what is looked for, so they stay. The dependencies are those of the tests' own profile.
CARGO_PROFILE_DEV_OPT_LEVEL=1
CARGO_INCREMENTAL=0
export ARENAD_FUZZ_SECONDS ARENAD_FUZZ_SEED CARGO_PROFILE_DEV_OPT_LEVEL CARGO_INCREMENTAL
exec "${CARGO:-cargo}" test --locked --test fuzz "$@"
