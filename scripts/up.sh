#!/bin/sh
# `make up`: compiles arenad, prepares the machine and builds the images in parallel, and brings the mini environment up.
#
# Compiling needs processors, and installing packages and building images need the network, so they share a small machine
# well. The output of the compiler and of the builds goes to target/up/*.log; a failure prints the end of it. The
# preparation prints each installation at once. Environment: PROFILE, cargo's profile (default quick, which optimizes less
# than release and builds faster).
set -eu

cd "$(dirname -- "$0")/.."
# shellcheck source=scripts/lib/images.sh
. scripts/lib/images.sh
: "${CARGO:=cargo}" "${PROFILE:=quick}"
# A shell that was open when rustup was installed may not have rustup's folder on its PATH.
[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
logs=target/up
mkdir -p "$logs"
begun=$(date +%s)
terminal=
[ -t 2 ] && terminal=yes

say() { echo "up: $*" >&2; }

# Formats seconds for people.
spell() {
    if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}
since() { spell $(($(date +%s) - $1)); }

fail() { # log, message
    say "$2; the last lines of $1:"
    tail -n 40 "$1" >&2
    exit 1
}

# Ends the background work however this script ends.
machine=
images=
program=
# shellcheck disable=SC2317,SC2329 # called by the trap
end() {
    for process in $program $machine $images; do kill "$process" 2>/dev/null || true; done
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Counts the crates that a build from nothing compiles, for the progress line.
crates() { "$CARGO" tree --locked --prefix none --edges normal,build --no-dedupe --format '{p}' 2>/dev/null | sort -u | wc -l; }

# Host tools, the engine and the base images, in this order: each needs the one before it. dpkg allows one installation
# at a time.
prepare() {
    scripts/host-tools.sh && scripts/engine.sh && scripts/base-image.sh
}

progress() {
    compiled=$(grep -c '^ *Compiling ' "$logs/program.log" 2>/dev/null || true)
    line="compiled ${compiled:-0} of $total crates"
    [ -z "$images" ] || line="$line, built $(tail -n 1 "$logs/images.done" 2>/dev/null | sed 's/ [^0-9].*//' | grep . || echo 0) images"
    echo "$line ($(since "$begun"))"
}

: >"$logs/program.log"
"$CARGO" build --profile "$PROFILE" --locked >"$logs/program.log" 2>&1 &
program=$!
prepare &
machine=$!
total=0
shown=0
while [ -n "$program$machine$images" ]; do
    sleep 0.2
    if [ -n "$machine" ] && ! kill -0 "$machine" 2>/dev/null; then
        # The script that failed has printed the reason.
        wait "$machine" || exit 1
        machine=
        if ! images_are_here; then
            : >"$logs/images.done"
            scripts/images-ahead.sh >"$logs/images.done" 2>"$logs/images.log" &
            images=$!
        fi
    fi
    if [ -n "$program" ] && ! kill -0 "$program" 2>/dev/null; then
        [ -z "$terminal" ] || printf '\r\033[K' >&2
        code=0
        wait "$program" || code=$?
        program=
        [ "$code" = 0 ] || fail "$logs/program.log" "arenad could not be compiled"
        [ "$total" = 0 ] || say "arenad is compiled ($(since "$begun"))"
    fi
    if [ -n "$images" ] && ! kill -0 "$images" 2>/dev/null; then
        [ -z "$terminal" ] || printf '\r\033[K' >&2
        if wait "$images"; then
            say "the images are built ($(since "$begun"))"
        else
            # `arenad up` builds the images too and reports which of them failed.
            say "not all images could be built ahead; see $logs/images.log"
        fi
        images=
    fi
    now=$(date +%s)
    if [ "$total" = 0 ] && [ $((now - begun)) -ge 3 ] && [ -n "$program" ]; then
        total=$(crates)
        say "compiling arenad; logs are in $logs/"
    fi
    [ "$total" != 0 ] && [ -n "$program$machine$images" ] || continue
    if [ -n "$terminal" ]; then
        [ "$now" = "$shown" ] || printf '\r\033[Kup: %s' "$(progress)" >&2
        shown=$now
    elif [ $((now - shown)) -ge 30 ]; then
        [ "$shown" = 0 ] || say "$(progress)"
        shown=$now
    fi
done
trap - EXIT

# The program that another profile built earlier is not used.
ARENAD_STORAGE=${ARENAD_STORAGE:-auto} "${CARGO_TARGET_DIR:-target}/$PROFILE/arenad" up "$@"
