#!/bin/sh
# Installs the programs that the daemon calls on the host besides Docker, from Debian packages. Silent if all are
# installed.
#
# xfsprogs    makes the file system on which copies of sites' state share their blocks
# mount       mounts it through a loop device: mount, umount, losetup
# bubblewrap  the sandbox of the browser in which `js:` locators open pages
#
# A daemon that does not run as root needs only the last one, because it creates no file systems. If the first two
# cannot be installed, sites work with full copies, and `arenad up` says so at its end. Without the sandbox no browser
# of the host is started.
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

[ "$(id -u)" = 0 ] || exit 0

missing=
need() { # program, package
    command -v "$1" >/dev/null 2>&1 || case " $missing " in *" $2 "*) ;; *) missing="$missing $2" ;; esac
}
PATH=$PATH:/usr/sbin:/sbin
need mkfs.xfs xfsprogs
need mount mount
need umount mount
need losetup mount
need bwrap bubblewrap
[ -n "$missing" ] || exit 0

# shellcheck disable=SC2086 # a list of words
if ! can_install || ! install_packages "host tools" $missing; then
    echo "host tools: missing:$missing; without xfsprogs and mount, copies of sites' state are full copies unless they lie on XFS or btrfs, and without bubblewrap \`js:\` locators need the browser's image (\`make browser\`)" >&2
fi
