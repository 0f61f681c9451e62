#!/bin/sh
# Runs schedules of the simulation with optimized code. ARENAD_SIM_SCHEDULES sets their number (default 10000). Each run
# uses the same schedules; ARENAD_SIM_BASE=random selects new ones. Arguments are passed to cargo.
set -eu

cd "$(dirname -- "$0")/.."
: "${ARENAD_SIM_SCHEDULES:=10000}"
# The dependencies are those of the tests' profile, so only arenad is rebuilt.
CARGO_PROFILE_DEV_OPT_LEVEL=1
CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false
CARGO_PROFILE_DEV_OVERFLOW_CHECKS=false
CARGO_INCREMENTAL=0
export ARENAD_SIM_SCHEDULES CARGO_PROFILE_DEV_OPT_LEVEL CARGO_PROFILE_DEV_DEBUG_ASSERTIONS CARGO_PROFILE_DEV_OVERFLOW_CHECKS CARGO_INCREMENTAL
exec "${CARGO:-cargo}" test --workspace --locked --test simulation "$@"
