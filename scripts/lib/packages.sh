# shellcheck shell=sh
# Sourced by the scripts that install Debian packages.
#
# A package is named before it is installed. What apt-get and the packages' own scripts print is shown only where they fail:
# warnings of debconf without apt-utils, of certificates and of services that no init may start say nothing about this machine.

# Whether packages can be installed here at all.
can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# Fetches the lists of packages, unless that was done within the hour.
update_lists() {
    [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mmin -60 2>/dev/null | head -n 1)" ] || return 0
    apt-get update
}

# Whether Debian has a package of that name.
has_package() { # package
    update_lists >/dev/null 2>&1 || true
    apt-cache show "$1" >/dev/null 2>&1
}

install_packages() { # who says so, packages…
    who=$1
    shift
    echo "$who: installing from Debian: $*" >&2
    said=$(mktemp)
    if (
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
        # Lists that cannot be fetched may be there already, and good enough.
        update_lists || true
        apt-get install -y --no-install-recommends "$@" || {
            # A list that is an hour old may name versions that are gone.
            apt-get update && apt-get install -y --no-install-recommends "$@"
        }
    ) >"$said" 2>&1 </dev/null; then
        rm -f "$said"
        return 0
    fi
    echo "$who: apt-get could not install $*; its last lines:" >&2
    tail -n 15 "$said" >&2
    rm -f "$said"
    return 1
}
