#!/bin/sh
# Provides the base images of all sites: Debian bookworm and, for the forge, Debian trixie.
#
# For each of the two:
# 1. If the image named by its variable (environment, else compose/.env) exists: nothing to do.
# 2. If debian:SUITE-slim exists or can be pulled: nothing to do; Dockerfiles use it by default.
# 3. Otherwise, if no registry can be reached: builds arenad-base:SUITE from Debian packages with mmdebstrap and
#    writes it into compose/.env.
#
# Environment: BASE_IMAGE, BASE_IMAGE_TRIXIE; PULL_TIMEOUT, the time limit for a pull in seconds (default 60).
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dotenv=$root/compose/.env

say() { echo "base image: $*" >&2; }
fail() { say "$*"; exit 1; }
exists() { docker image inspect "$1" >/dev/null 2>&1; }

# Replaces the line of a variable, or removes it if no value is given, and keeps all other lines. The rename makes the
# change atomic.
set_dotenv() { # variable, value
    umask 022
    { [ ! -f "$dotenv" ] || grep -v "^$1=" "$dotenv" || true; } >"$dotenv.new"
    [ -z "${2:-}" ] || echo "$1=$2" >>"$dotenv.new"
    if [ -s "$dotenv.new" ]; then mv "$dotenv.new" "$dotenv"; else rm -f "$dotenv.new" "$dotenv"; fi
}

# Prints this machine's own Debian archives as one-line sources of the given suite, or nothing if it uses none. A third
# party's archive may have the same suite name, so the function also checks component and key.
debian_sources() { # suite
    own=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
    [ -n "$own" ] || return 0
    {
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk -v own="^$own(-updates|-security)?\$" '
            $1 != "deb" { next }
            { line = $0; options = ""
              if (match(line, /\[[^]]*\]/)) { options = substr(line, RSTART, RLENGTH); sub(/\[[^]]*\]/, "", line) }
              split(line, word, " ")
              if (word[3] !~ own || word[4] != "main" || word[2] !~ /^https?:/) next
              if (options ~ /signed-by/ && options !~ /debian-archive/) next
              print "deb", word[2], word[3], "main" }'
        for file in /etc/apt/sources.list.d/*.sources; do
            [ -f "$file" ] || continue
            # Prints one paragraph per entry. Comment lines are removed first because they would join paragraphs.
            grep -v '^#' "$file" | awk -v own="^$own(-updates|-security)?\$" '
                function flush(  i, j, m, n, uris, suites) {
                    if (field["types"] ~ /(^| )deb( |$)/ && field["components"] ~ /(^| )main( |$)/ && tolower(field["enabled"]) != "no" &&
                        (field["signed-by"] == "" || field["signed-by"] ~ /debian-archive/)) {
                        n = split(field["uris"], uris, " "); m = split(field["suites"], suites, " ")
                        for (i = 1; i <= n; i++) for (j = 1; j <= m; j++)
                            if (uris[i] ~ /^https?:/ && suites[j] ~ own) print "deb", uris[i], suites[j], "main"
                    }
                    split("", field)
                }
                /^[ \t]*$/ { flush(); next }
                /^[^ \t]/ { at = index($0, ":"); key = tolower(substr($0, 1, at - 1)); field[key] = substr($0, at + 1); next }
                { field[key] = field[key] " " $0 }
                END { flush() }'
        done
    } | sort -u | sed "s/ $own/ $1/"
}

# Installs the requirements of mmdebstrap on this machine: the program itself, and the keys of a release that may be
# newer than the machine's.
prepare_mmdebstrap() { # suite
    [ "$(id -u)" = 0 ] || fail "this needs root"
    missing=
    command -v mmdebstrap >/dev/null 2>&1 || missing=mmdebstrap
    [ -e "/usr/share/keyrings/debian-archive-$1-stable.gpg" ] || missing="$missing debian-archive-keyring"
    [ -n "$missing" ] || return 0
    can_install || fail "$missing: missing or too old, and this is no Debian; install by hand"
    # shellcheck disable=SC2086 # one or two words
    install_packages "base image" $missing || exit 1
}

build() { # suite, image
    say "debian:$1-slim cannot be pulled, building $2 from Debian packages (about a minute)"
    prepare_mmdebstrap "$1"
    suite=$1 image=$2
    set -- --variant=minbase --include=ca-certificates \
        --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
    bundle=
    # Companies that inspect TLS install their own certificate authority on the host; downloads in a build need it too.
    # pip has its own list of authorities and ignores the system's, so the variables name the system's list.
    if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
        say "adding this machine's own certificate authorities; keep the image on this machine"
        bundle=/etc/ssl/certs/ca-certificates.crt
        # The hook hides the warnings of a successful run: they concern Debian's own files.
        # shellcheck disable=SC2016 # $1 is the hook's argument, the new root
        set -- "$@" --customize-hook='copy-in /usr/local/share/ca-certificates /usr/local/share' \
            --customize-hook='said=$(chroot "$1" update-ca-certificates 2>&1) || { echo "$said" >&2; exit 1; }'
    fi
    debian_sources "$suite" >"$work/sources"
    # Without a mirror, mmdebstrap uses its own default, which is right on hosts that do not run Debian.
    sources=
    [ ! -s "$work/sources" ] || sources=$work/sources

    # mmdebstrap writes a file: from a pipe, docker would import a truncated archive.
    mmdebstrap --quiet "$@" "$suite" "$work/root.tar" ${sources:+"$sources"} ||
        fail "mmdebstrap failed; are the Debian mirrors in /etc/apt reachable?"

    set -- --change 'CMD ["bash"]' --change 'ENV LANG=C.UTF-8' --change "LABEL dev.arenad.base=$suite"
    if [ -n "$bundle" ]; then
        for variable in PIP_CERT SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS; do
            set -- "$@" --change "ENV $variable=$bundle"
        done
    fi
    docker import "$@" "$work/root.tar" "$image" >/dev/null || fail "docker import failed"
    rm -f "$work/root.tar"
    say "built $image"
}

# Performs the steps described at the top of this file for one of the images.
provide() { # variable, suite
    name=arenad-base:$2
    default=debian:$2-slim
    eval "from_environment=\${$1:-}"
    wanted=$from_environment
    if [ -n "$wanted" ]; then
        ! exists "$wanted" || return 0
        [ "$wanted" = "$name" ] || [ "$wanted" = "$default" ] || {
            say "$1=$wanted is not here, pulling it"
            docker pull "$wanted" >/dev/null || fail "$wanted cannot be pulled; name an image that exists, or unset $1"
            return 0
        }
    elif [ -f "$dotenv" ]; then
        wanted=$(sed -n "s/^$1=//p" "$dotenv" | tail -n 1)
        [ -z "$wanted" ] || ! exists "$wanted" || return 0
    fi

    # If one image could not be pulled, the next one is not tried.
    if exists "$default" || { [ "$registry" = yes ] && timeout "${PULL_TIMEOUT:-60}" docker pull "$default" >/dev/null 2>&1; }; then
        # A line that was written when no registry could be reached would name an image that no longer exists.
        [ -z "$wanted" ] || set_dotenv "$1"
        return 0
    fi
    registry=no
    exists "$name" || build "$2" "$name"
    [ -n "$from_environment" ] || set_dotenv "$1" "$name"
    say "$1 is $name"
}

command -v docker >/dev/null 2>&1 || fail "no docker client; run scripts/engine.sh first"
docker version >/dev/null 2>&1 || fail "no Docker engine answers; run scripts/engine.sh first"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
registry=yes
provide BASE_IMAGE bookworm
provide BASE_IMAGE_TRIXIE trixie
