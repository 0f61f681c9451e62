#!/bin/sh
# Installs what the tests and the benchmark need beside Rust and Docker, from Debian; silent where all is there.
#
# busybox-static   the program of the toy sites' images
# iproute2, procps network namespaces and processes of engines that tests start for themselves
# xfsprogs         file systems with reflinks
# nginx-light, wrk what the benchmark compares the gateway with
# mmdebstrap       the bare Debian in which the scripts are tried
# chromium         the browser that uses the sites, and its headless shell, by which arenad looks at them
# bubblewrap       keeps it from noticing the host's networks, which tests make and remove all the time
# python3          runs the tests of the Python client
# docker-compose   checks that the Compose files mean to it what they mean to arenad
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

say() { echo "test-tools: $*" >&2; }
fail() { say "$*"; exit 1; }

# Program and package: a program that is there is not asked for again, whoever installed it.
missing=
need() { # program, package
    [ -x "$1" ] || command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
PATH=$PATH:/usr/sbin:/sbin
need /bin/busybox busybox-static
need ip iproute2
need pgrep procps
need nginx nginx-light
need wrk wrk
need docker-compose docker-compose
need mkfs.xfs xfsprogs
need mmdebstrap mmdebstrap
need chromium chromium
need chromium-headless-shell chromium-headless-shell
need bwrap bubblewrap
need python3 python3

# A dynamically linked busybox does not run in an empty image.
if [ -x /bin/busybox ] && ldd /bin/busybox 2>/dev/null | grep -q '=>'; then
    missing="$missing busybox-static"
fi
[ -n "$missing" ] || exit 0

[ "$(id -u)" = 0 ] || fail "missing:$missing; install them as root: apt-get install$missing"
can_install || fail "missing:$missing; this is no Debian, install them by hand"
# The tests start nginx themselves; the service that the package would start holds port 80.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
# shellcheck disable=SC2086 # a list of words
install_packages "test tools" $missing || exit 1
