#!/bin/sh
# Builds the Debian package target/dist/arenad_VERSION_ARCH.deb. Needs dpkg-deb, and the program that `make release`
# builds. Environment: PROGRAM, the program to pack (default target/release/arenad).
set -eu

cd "$(dirname -- "$0")/.."
program=${PROGRAM:-target/release/arenad}
[ -x "$program" ] || { echo "deb: $program is missing; run make release" >&2; exit 1; }
command -v dpkg-deb >/dev/null 2>&1 || { echo "deb: dpkg-deb is missing; install dpkg" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
arch=$(dpkg --print-architecture)
# The newest version of glibc whose symbols the program uses.
glibc=$(grep -aoE 'GLIBC_[0-9]+\.[0-9]+' "$program" | sed 's/GLIBC_//' | sort -uV | tail -n 1)

umask 022
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/DEBIAN" "$tree/usr/share/arenad" "$tree/usr/share/doc/arenad" "$tree/lib/systemd/system" \
    "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/vendor-completions"
install -D -m 0755 "$program" "$tree/usr/bin/arenad"
for folder in environments compose schemas; do
    # Excludes the files that local runs leave behind: variables of this machine, Python's caches and loaded tasks.
    tar -c --exclude=.env --exclude=__pycache__ --exclude='*.pyc' --exclude='environments/mini/turkle/*/*' "$folder" | tar -x -C "$tree/usr/share/arenad"
done
install -m 0644 packaging/arenad.service "$tree/lib/systemd/system/arenad.service"
install -m 0644 README.md CHANGELOG.md "$tree/usr/share/doc/arenad/"
install -m 0644 LICENSE "$tree/usr/share/doc/arenad/copyright"
"$program" completions bash >"$tree/usr/share/bash-completion/completions/arenad"
"$program" completions zsh >"$tree/usr/share/zsh/vendor-completions/_arenad"
chmod -R u=rwX,go=rX "$tree/usr" "$tree/lib"

cat >"$tree/DEBIAN/control" <<END
Package: arenad
Version: $version
Architecture: $arch
Maintainer: arenad maintainers <maintainers@arenad.invalid>
Section: utils
Priority: optional
Depends: libc6 (>= $glibc)
Recommends: docker.io | docker-ce, xfsprogs, mount, bubblewrap, chromium-headless-shell | chromium
Installed-Size: $(du -sk "$tree/usr" "$tree/lib" | awk '{ sum += $1 } END { print sum }')
Description: environments of web-agent benchmarks, reset to proven snapshots
 arenad runs the sites that web agents are tested on in Docker, resets them to
 snapshots within milliseconds, proves that they are equal to their baselines,
 and checks what an agent did.
END
install -m 0755 packaging/postinst packaging/prerm packaging/postrm "$tree/DEBIAN/"

mkdir -p target/dist
deb=target/dist/arenad_${version}_$arch.deb
dpkg-deb --build --root-owner-group "$tree" "$deb" >/dev/null
echo "$deb"
