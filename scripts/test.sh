#!/bin/sh
# Runs every test and ends with one line: N passed, N failed. Arguments are passed to cargo; with arguments, the long
# run of the simulation is skipped.
#
# Some tests read the benchmarks' own task files, which are not part of the project. ARENAD_BENCHMARK_DATA names the
# folder that contains webarena/test.raw.json and the other files. Without it these tests are skipped, and the last
# lines say so.
#
# ARENAD_TEST_DEADLINE is the time, in seconds since 1970, at which the simulations begin no further schedule.
set -eu

cd "$(dirname -- "$0")/.."
out=$(mktemp)
status_file=$(mktemp)
trap 'rm -f "$out" "$status_file"; [ -z "${simulation:-}" ] || kill "$simulation" 2>/dev/null || true' EXIT

# NeMo Gym's own agent is tested by scripts/test-harnesses.sh.
with_data=
[ -z "${ARENAD_BENCHMARK_DATA:-}" ] || with_data="--include-ignored --skip clients::openenv::nemo_gyms_own_agent"

# The optimized simulation is compiled while the tests run, because most of them wait for the engine. It begins after
# cargo has checked all programs, for which only one cargo can work at a time.
compile_simulation() {
    until grep -q '^ *Running ' "$out"; do sleep 1; done
    exec nice -n 19 scripts/simulation.sh --no-run
}
simulation=
if [ $# -eq 0 ]; then
    compile_simulation >/dev/null 2>&1 &
    simulation=$!
fi
# Three tests at a time: with two, two processors are idle for two fifths of the time.
: "${RUST_TEST_THREADS:=$(($(nproc) + 1))}"
export RUST_TEST_THREADS

# The exit code goes through a file, because a pipe would lose it.
{
    code=0
    # shellcheck disable=SC2086 # nothing, or several words
    cargo test --workspace --locked --no-fail-fast "$@" -- $with_data 2>&1 || code=$?
    echo "$code" >"$status_file"
} | tee "$out"

count() { # column, file
    awk -v column="$1" '/^test result:/ { n += $column } END { print n + 0 }' "$2"
}
passed=$(count 4 "$out")
failed=$(count 6 "$out")
left_out=$(count 8 "$out")
code=$(cat "$status_file")

# A few failed tests run once more, one at a time. Those that pass then depend on the load of the machine, which is a
# defect of the test or of arenad: their names and panics are printed, and they do not fail the run.
flaky=
failed_tests=$(sed -n 's/^test \([^ ]*\) .*\.\.\. FAILED$/\1/p' "$out" | sort -u)
# A program that crashed, or does not compile, has no result.
targets=$(sed -n 's/^    `\(-p .*\)`$/\1/p' "$out")
if [ "$failed" -gt 0 ] && [ "$failed" -le "${ARENAD_TEST_AGAIN:-3}" ] &&
    [ "$(echo "$targets" | wc -l)" = "$(grep -c '^test result: FAILED' "$out")" ]; then
    again=$(mktemp)
    echo "$targets" | while read -r target; do
        # With the package instead of the workspace, dependencies would be built again with other features.
        # shellcheck disable=SC2086 # several words
        RUST_TEST_THREADS=1 cargo test --workspace --locked ${target#-p * } -- --exact $with_data $failed_tests 2>&1 || true
    done | tee "$again"
    if [ "$(count 4 "$again")" = "$failed" ] && [ "$(count 6 "$again")" = 0 ]; then
        flaky=$failed_tests
        passed=$((passed + failed))
        failed=0
        code=0
    fi
    rm -f "$again"
fi
# Returns the seconds in which a simulation may begin schedules: ten minutes, or what is left until the deadline; half a
# minute in any case.
seconds_left() { # seconds to reserve
    left=600
    if [ -n "${ARENAD_TEST_DEADLINE:-}" ]; then
        left=$((ARENAD_TEST_DEADLINE - $(date +%s) - $1))
        [ "$left" -le 600 ] || left=600
        [ "$left" -ge 30 ] || left=30
    fi
    echo "$left"
}

# Runs the simulation twice more, each as one test: optimized, with the same schedules each time. The 10,000 without
# episodes take some minutes on two processors; a machine that has no time for all of them skips the rest and says so.
if [ -n "$simulation" ]; then
    # Without a result, the wait for the first program would not end. The run below reports code that does not compile.
    [ "$passed$failed" != 00 ] || kill "$simulation" 2>/dev/null || true
    wait "$simulation" || true
    simulation=
    for variables in ARENAD_SIM_EPISODES=0 "ARENAD_SIM_EPISODES=1 ARENAD_SIM_SCHEDULES=500"; do
        begun=$(date +%s)
        # The schedules with episodes take two minutes or so.
        [ "$variables" = ARENAD_SIM_EPISODES=0 ] && reserved=150 || reserved=0
        # shellcheck disable=SC2086 # several words
        if env $variables "ARENAD_SIM_SECONDS=$(seconds_left $reserved)" scripts/simulation.sh; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            [ "$code" != 0 ] || code=1
        fi
        simulations="${simulations:-}$variables $(($(date +%s) - begun)) s; "
    done
fi
# A target that does not compile or is killed by a signal has no result line of its own.
if [ "$code" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
if [ "$passed" = 0 ] && [ "$code" = 0 ]; then
    echo "no test was run" >&2
    code=1
fi
if [ "$left_out" != 0 ]; then
    echo "$left_out left out, for they read the benchmarks' task files: set ARENAD_BENCHMARK_DATA to a folder that has"
    echo "webarena/test.raw.json (config_files/ of github.com/web-arena-x/webarena) and visualwebarena/test_*.raw.json (config_files/vwa/"
    echo "of github.com/web-arena-x/visualwebarena)"
fi
# The panics of the failed tests, ten lines of each, at the end of the output.
awk '
    /^---- .* stdout ----$/ { name = $2; next }
    /^failures:$/ || /^test result:/ { name = ""; left = 0 }
    name != "" && / panicked at / { print "failed: " name; left = 10 }
    name != "" && left > 0 && NF { print "    " substr($0, 1, 400); left-- }
' "$out"
for name in $flaky; do
    echo "flaky: $name failed among the others, and passed alone"
done
# The programs that took longest, in seconds.
times=$(awk '
    /^ +Running / { name = $2 == "unittests" ? $NF : $2 }
    /^test result:/ && $(NF - 1) == "in" && $NF + 0 >= 10 { printf "%s %d s; ", name, $NF }
' "$out")
echo "times: ${ARENAD_TEST_TIMES:-}$times${simulations:-}"
echo "$passed passed, $failed failed"
exit "$code"
