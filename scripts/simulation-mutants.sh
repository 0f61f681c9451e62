#!/bin/sh
# Puts each known former bug back, one at a time, and runs the simulation until it finds the bug.
#
#   scripts/simulation-mutants.sh [NAME...]      NAME: of tests/simulation/mutants/NAME.patch; all if none is given
#   scripts/simulation-mutants.sh --check        checks only that all patches still apply; builds nothing, takes a second
#
# All patches are applied to a copy of the tree at once. Each bug is behind a switch (`crate::mutant::is`, which
# switch.patch adds), so that one build serves for all. ARENAD_SIM_SCHEDULES bounds the search (default 10000), and
# ARENAD_SIM_BASE sets its first seed. Exit code 1: at least one bug was not found.
set -eu
cd "$(dirname "$0")/.."
patches=tests/simulation/mutants
copy=${ARENAD_MUTANTS_FOLDER:-target/mutants}
: "${ARENAD_SIM_SCHEDULES:=10000}"
: "${ARENAD_SIM_BASE:=1}"
export ARENAD_SIM_SCHEDULES ARENAD_SIM_BASE ARENAD_SIM_TWICE=0
check=
if [ "${1:-}" = --check ]; then
    check=yes
    copy=$(mktemp --directory)
    trap 'rm -rf "$copy"' EXIT
    shift
fi
[ $# -gt 0 ] || set -- $(ls $patches | sed -n '/^switch\.patch$/d; s/\.patch$//p')

rm -rf "$copy/tree"
mkdir -p "$copy/tree"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$copy/tree"
for patch in switch "$@"; do
    # The ceiling keeps git from treating the copy as part of the repository, in which case it would skip all files.
    if ! (cd "$copy/tree" && GIT_CEILING_DIRECTORIES=$(dirname "$PWD") git apply -) <"$patches/$patch.patch"; then
        echo "$patches/$patch.patch does not apply to the tree any more: bring it up to date" >&2
        exit 1
    fi
done
[ -z "$check" ] || exit 0
# The dependencies are those of the tree itself, so only arenad is rebuilt. It is built without line numbers, because
# cargo would otherwise confuse the result with the tree's own.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
CARGO_PROFILE_DEV_DEBUG=0
export CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG
"$copy/tree/scripts/simulation.sh" --no-run

failed=0
for name in "$@"; do
    log=$copy/$name.log
    # The mutants of episodes are found in schedules with episodes.
    case $name in e*) one_in=2 ;; *) one_in=0 ;; esac
    if ARENAD_MUTANT=$name ARENAD_SIM_EPISODES=$one_in "$copy/tree/scripts/simulation.sh" --quiet >"$log" 2>&1; then
        echo "$name: not found in $ARENAD_SIM_SCHEDULES schedules"
        failed=1
    else
        echo "$name: $(sed -n 's/^simulation: \([0-9]* schedules in [^,]*\),.*/found after \1/p' "$log"):" \
            "$(sed -n '/breaks a law/{n;s/^ *//p;}' "$log")"
    fi
done
exit $failed
