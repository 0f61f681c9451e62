#!/bin/sh
# Provides the tools that compile arenad: Rust, a C compiler and make. Silent if all are installed.
set -eu

# shellcheck source=scripts/lib/packages.sh
. "$(dirname -- "$0")/lib/packages.sh"

least=1.94

say() { echo "toolchain: $*" >&2; }

if ! command -v cc >/dev/null 2>&1; then
    if can_install; then
        install_packages toolchain gcc libc6-dev || exit 1
    else
        say "a C compiler is missing: install gcc"
        exit 1
    fi
fi

# A shell that was open when rustup was installed may not have rustup's folder on its PATH.
[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# Debian 13 has a package of rustup; Debian 12 has only a Rust that is too old.
if ! command -v cargo >/dev/null 2>&1 && can_install && has_package rustup; then
    install_packages toolchain rustup || exit 1
    say "installing Rust with it"
    rustup toolchain install stable --profile minimal
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
