#!/bin/sh
# Runs schedules of the simulation with optimized code: ARENAD_SIM_SCHEDULES of them, 10000 unless it says otherwise. The same each
# time; ARENAD_SIM_BASE=random looks for new ones. Arguments go to cargo.
set -eu

cd "$(dirname -- "$0")/.."
: "${ARENAD_SIM_SCHEDULES:=10000}"
# The dependencies are those of the tests' own profile, so only arenad is built again.
CARGO_PROFILE_DEV_OPT_LEVEL=1
CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false
CARGO_PROFILE_DEV_OVERFLOW_CHECKS=false
CARGO_INCREMENTAL=0
export ARENAD_SIM_SCHEDULES CARGO_PROFILE_DEV_OPT_LEVEL CARGO_PROFILE_DEV_DEBUG_ASSERTIONS CARGO_PROFILE_DEV_OVERFLOW_CHECKS CARGO_INCREMENTAL
exec "${CARGO:-cargo}" test --locked --test simulation "$@"
