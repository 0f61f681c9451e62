#!/bin/sh
# Makes sure that arenad can be compiled here: Rust, a C compiler and make. Silent when all is there.
set -eu

least=1.94

say() { echo "toolchain: $*" >&2; }

if ! command -v cc >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing gcc and libc6-dev from Debian"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
    else
        say "a C compiler is missing: install gcc"
        exit 1
    fi
fi

# rustup's folder may not be on the PATH of a shell that was open when it was installed.
[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
if ! command -v cargo >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # Debian 13 packages rustup; Debian 12 only a Rust that is too old.
    if apt-cache show rustup >/dev/null 2>&1; then
        say "installing rustup from Debian and Rust with it"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustup >/dev/null
        rustup toolchain install stable --profile minimal
    fi
fi
if ! command -v cargo >/dev/null 2>&1; then
    say "Rust $least or newer is missing: install it with rustup (https://rustup.rs), then try again"
    exit 1
fi
found=$(cargo --version | awk '{print $2}')
oldest=$(printf '%s\n%s\n' "$least" "$found" | sort -V | head -n 1)
if [ "$oldest" != "$least" ]; then
    say "Rust $found is too old, $least is needed: \`rustup update\` brings it"
    exit 1
fi
