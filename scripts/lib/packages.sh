# shellcheck shell=sh
# Sourced by the scripts that install Debian packages.
#
# A package is named before it is installed. The output of apt-get and of the packages' own scripts is shown only on failure:
# warnings about debconf without apt-utils, certificates and services that no init system may start do not concern this machine.

# Returns whether packages can be installed on this machine.
can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# Updates the package lists, unless that was done within the last hour.
update_lists() {
    [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mmin -60 2>/dev/null | head -n 1)" ] || return 0
    apt-get update
}

# Returns whether Debian has a package of this name.
has_package() { # package
    (flock 9; update_lists 9>&-) >/dev/null 2>&1 9</var/lib/dpkg || true
    apt-cache show "$1" >/dev/null 2>&1
}

install_packages() { # prefix of the messages, packages…
    who=$1
    shift
    echo "$who: installing from Debian: $*" >&2
    said=$(mktemp)
    if (
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
        # Two scripts may install at the same time; apt-get itself would fail instead of waiting. The processes that it
        # starts do not inherit the lock.
        flock 9
        {
            # If the lists cannot be updated, the existing ones may suffice.
            update_lists || true
            apt-get install -y --no-install-recommends "$@" || {
                # Lists up to an hour old may name versions that no longer exist.
                apt-get update && apt-get install -y --no-install-recommends "$@"
            }
        } 9>&-
    ) >"$said" 2>&1 </dev/null 9</var/lib/dpkg; then
        rm -f "$said"
        return 0
    fi
    echo "$who: apt-get could not install $*; its last lines:" >&2
    tail -n 15 "$said" >&2
    rm -f "$said"
    return 1
}
