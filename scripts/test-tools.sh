#!/bin/sh
# Installs the programs that the tests and benchmarks need besides Rust and Docker, from Debian packages. Silent if all
# are installed.
#
# busybox-static   the program of the toy sites' images
# iproute2, procps network namespaces and processes of the engines that tests start
# xfsprogs         file systems with reflinks
# nginx-light, tinyproxy-bin, wrk  the proxies that the benchmark compares the gateway with, and the load generator
# mmdebstrap       the bare Debian in which the scripts are tested
# chromium         the browser that uses the sites, and its headless shell, with which arenad opens their pages
# bubblewrap       hides the host's networks from the browser, because tests constantly add and remove some
# python3, python3-venv  runs the tests of the Python client, and the code of harnesses
# curl             uses the episode proxy as clients do
# docker-compose   checks that it reads the Compose files as arenad does
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

say() { echo "test-tools: $*" >&2; }
fail() { say "$*"; exit 1; }

# Takes a program and its package. A program that exists already is not installed again, even if it does not come from a
# package.
missing=
need() { # program, package
    [ -x "$1" ] || command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
PATH=$PATH:/usr/sbin:/sbin
need /bin/busybox busybox-static
need ip iproute2
need pgrep procps
need nginx nginx-light
need tinyproxy tinyproxy-bin
need wrk wrk
need docker-compose docker-compose
need mkfs.xfs xfsprogs
need mmdebstrap mmdebstrap
need chromium chromium
need chromium-headless-shell chromium-headless-shell
need bwrap bubblewrap
need python3 python3
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
need curl curl

# A dynamically linked busybox does not run in an empty image.
if [ -x /bin/busybox ] && ldd /bin/busybox 2>/dev/null | grep -q '=>'; then
    missing="$missing busybox-static"
fi
[ -n "$missing" ] || exit 0

[ "$(id -u)" = 0 ] || fail "missing:$missing; install them as root: apt-get install$missing"
can_install || fail "missing:$missing; this is no Debian, install them by hand"
# The tests start nginx themselves; the service that the package would start occupies port 80.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
# shellcheck disable=SC2086 # a list of words
install_packages "test tools" $missing || exit 1
