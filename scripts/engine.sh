#!/bin/sh
# Provides a running Docker engine on this machine; does nothing if one answers already.
#
# If none answers, the script installs Debian's docker.io unless dockerd exists, starts it through systemd or, without
# systemd, as a background process, and waits for an answer. Environment: ENGINE_TIMEOUT, the time limit in seconds
# (default 60).
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

socket=/var/run/docker.sock
log=/var/log/dockerd.log
timeout=${ENGINE_TIMEOUT:-60}

say() { echo "engine: $*" >&2; }
fail() { say "$*"; exit 1; }

# Asks the engine itself: a client may be missing or use another endpoint.
answers() {
    if command -v docker >/dev/null 2>&1; then
        docker version --format '{{.Server.Version}}' >/dev/null 2>&1 && return 0
    fi
    # If DOCKER_HOST names an engine, the socket would be a different one.
    [ -z "${DOCKER_HOST:-}" ] || return 1
    [ -S "$socket" ] && command -v curl >/dev/null 2>&1 &&
        curl -fsS --max-time 5 --unix-socket "$socket" http://localhost/_ping >/dev/null 2>&1
}

# Returns whether the process in a pid file is alive and is the named one. Zombies do not count as alive, and engines
# that a user runs beside the machine's own do not count either.
lives() { # file, process name
    [ -r "$1" ] || return 1
    pid=$(cat "$1" 2>/dev/null | tr -cd 0-9)
    [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null || true)" = "$2" ] || return 1
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null || true)
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

# A pid file survives a power failure. dockerd then refuses to start if any process has the number, so the file is
# removed unless it names a running engine.
drop_stale_pid() { # file, process name
    [ -f "$1" ] || return 0
    ! lives "$1" "$2" || return 0
    say "removing $1, left behind by a $2 that is gone"
    rm -f "$1"
}

start_dockerd() {
    drop_stale_pid /var/run/docker.pid dockerd
    drop_stale_pid /var/run/docker/containerd/containerd.pid containerd
    say "starting dockerd in the background, log in $log"
    # A session of its own lets the engine survive the terminal that started it.
    setsid dockerd >>"$log" 2>&1 </dev/null &
    started=$((started + 1))
    begun=$(date +%s)
}
started=0
begun=0

answers && exit 0

[ -z "${DOCKER_HOST:-}" ] || fail "DOCKER_HOST=$DOCKER_HOST does not answer, and only a local engine can be started here; unset it to use one"
[ "$(id -u)" = 0 ] || fail "no Docker engine answers; run this as root to install and start one, or start your own (Docker Desktop, systemctl start docker)"

if ! command -v dockerd >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || fail "dockerd is missing and this is no Debian: install Docker by hand, then try again"
    set -- docker.io iptables ca-certificates
    # Since Debian 13 the client is a package of its own.
    ! has_package docker-cli || set -- "$@" docker-cli
    # A policy that forbids starting services makes the package's own start harmless if no init system runs.
    install_packages engine "$@" || exit 1
    answers && exit 0
fi

if [ -d /run/systemd/system ]; then
    say "starting the engine through systemd"
    systemctl start docker || fail "systemctl could not start docker; see: journalctl -u docker"
    log=
elif lives /var/run/docker.pid dockerd; then
    say "dockerd runs but does not answer yet, waiting for it"
else
    start_dockerd
fi

deadline=$(($(date +%s) + timeout))
until answers; do
    if [ "$(date +%s)" -ge "$deadline" ]; then
        say "the engine does not answer after $timeout s"
        if [ -n "$log" ] && [ -f "$log" ]; then
            say "last lines of $log:"
            tail -n 20 "$log" >&2
        else
            say "see: journalctl -u docker"
        fi
        exit 1
    fi
    # The process waited for may have been one that was just exiting. A new one gets some seconds to write its pid file.
    if [ -n "$log" ] && [ "$started" -lt 3 ] && [ "$(date +%s)" -ge $((begun + 5)) ] && ! lives /var/run/docker.pid dockerd; then
        start_dockerd
    fi
    sleep 0.2
done
say "the engine answers"
