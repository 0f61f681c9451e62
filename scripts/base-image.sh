#!/bin/sh
# Makes sure that the image every site is built on is there.
#
# 1. If the image named by BASE_IMAGE (environment, else compose/.env) exists: nothing to do.
# 2. If debian:bookworm-slim is here or can be pulled: nothing else to do, Dockerfiles default to it.
# 3. Otherwise, where no registry can be reached: builds arenad-base:bookworm from Debian packages
#    with mmdebstrap and writes BASE_IMAGE=arenad-base:bookworm into compose/.env.
#
# Environment: BASE_IMAGE; PULL_TIMEOUT, seconds that a pull may take (default 60).
set -eu

name=arenad-base:bookworm
default=debian:bookworm-slim
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dotenv=$root/compose/.env

say() { echo "base image: $*" >&2; }
fail() { say "$*"; exit 1; }
exists() { docker image inspect "$1" >/dev/null 2>&1; }

# Replaces (or, without a value, drops) the line BASE_IMAGE= and keeps all others. The rename makes
# it whole or not at all.
set_dotenv() {
    umask 022
    { [ ! -f "$dotenv" ] || grep -v '^BASE_IMAGE=' "$dotenv" || true; } >"$dotenv.new"
    [ -z "${1:-}" ] || echo "BASE_IMAGE=$1" >>"$dotenv.new"
    if [ -s "$dotenv.new" ]; then mv "$dotenv.new" "$dotenv"; else rm -f "$dotenv.new" "$dotenv"; fi
}

# The Debian archives that this machine itself uses, as one-line sources; nothing where it uses none.
# A third party's archive may carry the same suite name, hence the look at component and key.
debian_sources() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk '
        $1 != "deb" { next }
        { line = $0; options = ""
          if (match(line, /\[[^]]*\]/)) { options = substr(line, RSTART, RLENGTH); sub(/\[[^]]*\]/, "", line) }
          count = split(line, word, " ")
          if (word[3] !~ /^bookworm(-updates|-security)?$/ || word[4] != "main" || word[2] !~ /^https?:/) next
          if (options ~ /signed-by/ && options !~ /debian-archive/) next
          print "deb", word[2], word[3], "main" }'
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        # A paragraph per entry; comment lines would otherwise glue paragraphs together.
        grep -v '^#' "$file" | awk '
            function flush(  i, j, uris, suites) {
                if (field["types"] ~ /(^| )deb( |$)/ && field["components"] ~ /(^| )main( |$)/ && tolower(field["enabled"]) != "no" &&
                    (field["signed-by"] == "" || field["signed-by"] ~ /debian-archive/)) {
                    n = split(field["uris"], uris, " "); m = split(field["suites"], suites, " ")
                    for (i = 1; i <= n; i++) for (j = 1; j <= m; j++)
                        if (uris[i] ~ /^https?:/ && suites[j] ~ /^bookworm(-updates|-security)?$/) print "deb", uris[i], suites[j], "main"
                }
                split("", field)
            }
            /^[ \t]*$/ { flush(); next }
            /^[^ \t]/ { at = index($0, ":"); key = tolower(substr($0, 1, at - 1)); field[key] = substr($0, at + 1); next }
            { field[key] = field[key] " " $0 }
            END { flush() }'
    done
}

command -v docker >/dev/null 2>&1 || fail "no docker client; run scripts/engine.sh first"
docker version >/dev/null 2>&1 || fail "no Docker engine answers; run scripts/engine.sh first"

wanted=${BASE_IMAGE:-}
if [ -n "$wanted" ]; then
    exists "$wanted" && exit 0
    [ "$wanted" = "$name" ] || [ "$wanted" = "$default" ] || {
        say "BASE_IMAGE=$wanted is not here, pulling it"
        docker pull "$wanted" >/dev/null || fail "$wanted cannot be pulled; name an image that exists, or unset BASE_IMAGE"
        exit 0
    }
elif [ -f "$dotenv" ]; then
    wanted=$(sed -n 's/^BASE_IMAGE=//p' "$dotenv" | tail -n 1)
    [ -z "$wanted" ] || ! exists "$wanted" || exit 0
fi

if exists "$default" || timeout "${PULL_TIMEOUT:-60}" docker pull "$default" >/dev/null 2>&1; then
    # A line from a time without registry would now name an image that is gone.
    [ -z "$wanted" ] || set_dotenv
    exit 0
fi

if ! exists "$name"; then
    say "$default cannot be pulled, building $name from Debian packages (about a minute)"
    [ "$(id -u)" = 0 ] || fail "this needs root"
    if ! command -v mmdebstrap >/dev/null 2>&1; then
        command -v apt-get >/dev/null 2>&1 || fail "mmdebstrap is missing and this is no Debian: install it by hand"
        say "installing mmdebstrap from Debian"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null || fail "apt-get could not install mmdebstrap"
    fi

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    set -- --variant=minbase --include=ca-certificates \
        --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
    bundle=
    # Companies that inspect TLS install their own authority on the host; downloads in a build need it too.
    # pip carries its own list of authorities and ignores the system's, hence the variables.
    if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
        say "adding this machine's own certificate authorities; keep the image on this machine"
        bundle=/etc/ssl/certs/ca-certificates.crt
        # shellcheck disable=SC2016 # $1 is the hook's argument, the new root
        set -- "$@" --customize-hook='copy-in /usr/local/share/ca-certificates /usr/local/share' \
            --customize-hook='chroot "$1" update-ca-certificates >/dev/null'
    fi
    debian_sources | sort -u >"$work/sources"
    # Without a mirror mmdebstrap uses its own default, which is right wherever the host is no bookworm.
    sources=
    [ ! -s "$work/sources" ] || sources=$work/sources

    # Through a file and not a pipe: a pipe would let docker import a truncated archive.
    mmdebstrap --quiet "$@" bookworm "$work/root.tar" ${sources:+"$sources"} ||
        fail "mmdebstrap failed; are the Debian mirrors in /etc/apt reachable?"

    set -- --change 'CMD ["bash"]' --change 'ENV LANG=C.UTF-8' --change 'LABEL dev.arenad.base=bookworm'
    if [ -n "$bundle" ]; then
        for variable in PIP_CERT SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS; do
            set -- "$@" --change "ENV $variable=$bundle"
        done
    fi
    docker import "$@" "$work/root.tar" "$name" >/dev/null || fail "docker import failed"
    say "built $name"
fi
[ -n "${BASE_IMAGE:-}" ] || set_dotenv "$name"
say "the sites will be built on $name"
