#!/bin/sh
# Runs every test and ends with one line: N passed, N failed. Arguments are passed to cargo; with arguments, the lints, the
# long run of the simulation and the order of the long tests are left out.
#
# The tests that tests/long.txt names run last. ARENAD_TEST_DEADLINE is the time, in seconds since 1970, at which neither
# they nor further schedules of the simulation begin; what was left out is printed. Without it, everything runs.
#
# Some tests read the benchmarks' own task files, which are not part of the project. ARENAD_BENCHMARK_DATA names the
# folder that contains webarena/test.raw.json and the other files. Without it these tests are skipped, and the last
# lines say so.
set -eu

cd "$(dirname -- "$0")/.."
out=$(mktemp)
status_file=$(mktemp)
lints=$(mktemp)
trap 'rm -f "$out" "$status_file" "$lints"; [ -z "${background:-}" ] || kill "$background" 2>/dev/null || true' EXIT

# scripts/test-harnesses.sh runs the trainers, whose packages take gigabytes. Whole names, because of --exact below.
trainers=$(sed -n 's/^\(async \)\?fn \([a-z_]*\)() {/--skip clients::trainers::\2/p' tests/clients/trainers.rs | tr '\n' ' ')
with_data=
[ -z "${ARENAD_BENCHMARK_DATA:-}" ] || with_data="--include-ignored $trainers"

# The long tests as lines of a program and a name.
long_tests() { grep -v '^\(#\|$\)' tests/long.txt; }

# The optimized simulation is compiled, and the code is checked by clippy, while the tests run, because most of them wait
# for the engine. This begins after cargo has checked all programs, for which only one cargo can work at a time.
compile_in_background() {
    until grep -q '^ *Running ' "$out"; do sleep 1; done
    nice -n 19 scripts/simulation.sh --no-run || true
    exec nice -n 19 make lint
}
background=
later=
if [ $# -eq 0 ]; then
    compile_in_background >"$lints" 2>&1 &
    background=$!
    later="--exact $(long_tests | sed 's/.* /--skip /' | tr '\n' ' ')"
fi
# Three tests at a time: with two, two processors are idle for two fifths of the time.
: "${RUST_TEST_THREADS:=$(($(nproc) + 1))}"
export RUST_TEST_THREADS

# Runs cargo's tests, and notes their output and a failure.
code=0
run() { # arguments of cargo
    # The exit code goes through a file, because a pipe would lose it.
    {
        ended=0
        "${CARGO:-cargo}" test --workspace --locked --no-fail-fast "$@" 2>&1 || ended=$?
        echo "$ended" >"$status_file"
    } | tee -a "$out"
    [ "$(cat "$status_file")" = 0 ] || code=$(cat "$status_file")
}

count() { # column, file
    awk -v column="$1" '/^test result:/ { n += $column } END { print n + 0 }' "$2"
}

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
simulate() {
    for variables in ARENAD_SIM_EPISODES=0 "ARENAD_SIM_EPISODES=1 ARENAD_SIM_SCHEDULES=500"; do
        begun=$(date +%s)
        # The schedules with episodes take two minutes or so.
        [ "$variables" = ARENAD_SIM_EPISODES=0 ] && reserved=150 || reserved=0
        # shellcheck disable=SC2086 # several words
        if env $variables "ARENAD_SIM_SECONDS=$(seconds_left $reserved)" scripts/simulation.sh; then
            further_passed=$((further_passed + 1))
        else
            further_failed=$((further_failed + 1))
        fi
        further_times="${further_times:-}$variables $(($(date +%s) - begun)) s; "
    done
}

# Runs the long tests, as many at a time as the machine takes, until the deadline.
run_long_tests() {
    for program in $(long_tests | cut -d' ' -f1 | uniq); do
        names=$(long_tests | sed -n "s/^$program //p")
        while [ -n "$names" ]; do
            if [ -n "${ARENAD_TEST_DEADLINE:-}" ] && [ "$(date +%s)" -ge "$ARENAD_TEST_DEADLINE" ]; then
                no_time="${no_time:-} $names"
                break
            fi
            batch=$(echo "$names" | head -n "$RUST_TEST_THREADS")
            names=$(echo "$names" | tail -n "+$((RUST_TEST_THREADS + 1))")
            # shellcheck disable=SC2086 # several words
            run --test "$program" -- --exact $with_data $batch
            ran=$(sed -n 's/^running \([0-9]*\) tests\{0,1\}$/\1/p' "$out" | tail -n 1)
            if [ "$ran" != "$(echo "$batch" | wc -l)" ]; then
                # shellcheck disable=SC2086 # several words
                echo "tests/long.txt: the program $program does not have all of" $batch >&2
                further_failed=$((further_failed + 1))
            fi
        done
    done
}

# shellcheck disable=SC2086 # nothing, or several words
run "$@" -- $with_data $later

further_passed=0
further_failed=0
if [ -n "$background" ]; then
    # Without a result, the wait for the first program would not end, and the run above reports code that does not compile.
    [ "$(count 4 "$out")$(count 6 "$out")" != 00 ] || kill "$background" 2>/dev/null || true
    if wait "$background"; then
        further_passed=$((further_passed + 1))
    else
        further_failed=$((further_failed + 1))
        cat "$lints"
    fi
    background=
    simulate
    run_long_tests
fi
passed=$(count 4 "$out")
failed=$(count 6 "$out")
left_out=$(count 8 "$out")

# A few failed tests run once more, one at a time. Those that pass then depend on the load of the machine, which is a
# defect of the test or of arenad: their names and panics are printed, and they do not fail the run.
flaky=
failed_tests=$(sed -n 's/^test \([^ ]*\) .*\.\.\. FAILED$/\1/p' "$out" | sort -u)
# A program that crashed, or does not compile, has no result.
targets=$(sed -n 's/^    `\(-p .*\)`$/\1/p' "$out")
if [ "$failed" -gt 0 ] && [ "$failed" -le "${ARENAD_TEST_AGAIN:-3}" ] &&
    [ "$(echo "$targets" | wc -l)" = "$(grep -c '^test result: FAILED' "$out")" ]; then
    again=$(mktemp)
    echo "$targets" | sort -u | while read -r target; do
        # With the package instead of the workspace, dependencies would be built again with other features.
        # shellcheck disable=SC2086 # several words
        RUST_TEST_THREADS=1 "${CARGO:-cargo}" test --workspace --locked ${target#-p * } -- --exact $with_data $failed_tests 2>&1 || true
    done | tee "$again"
    if [ "$(count 4 "$again")" = "$failed" ] && [ "$(count 6 "$again")" = 0 ]; then
        flaky=$failed_tests
        passed=$((passed + failed))
        failed=0
        code=0
    fi
    rm -f "$again"
fi
passed=$((passed + further_passed))
failed=$((failed + further_failed))
[ "$further_failed" = 0 ] || code=1
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
# shellcheck disable=SC2086 # several words
[ -z "${no_time:-}" ] || printf 'left out, for the time was over: %s\n' $no_time
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
echo "times: ${ARENAD_TEST_TIMES:-}$times${further_times:-}"
echo "$passed passed, $failed failed"
exit "$code"
