#!/usr/bin/env bash
# Makes the Debian packages of the commit that is checked out, from its source tarball, in $TARGET_DIR/deb. They
# install on this Debian and newer ones.
#
# ONBEAT is a binary to package in place of building one.
#
# usage: scripts/deb.sh [ARCHITECTURE]    # arm64: those for another architecture, cross-built, in $TARGET_DIR/deb-arm64
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${TARGET_DIR:-target}")
deb=$target/deb${1:+-$1}
version=$(scripts/version.sh)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
CARGO_TARGET_DIR=$deb/cargo
export SOURCE_DATE_EPOCH CARGO_HOME RUSTUP_HOME CARGO_TARGET_DIR
export PATH="$PATH:$CARGO_HOME/bin" TZ=UTC LC_ALL=C.UTF-8

# Always the same folder, or cargo would build everything anew for each version.
rm -rf "$deb/onbeat"
mkdir -p "$deb/onbeat"
find "$deb" -maxdepth 1 -type f -delete
mv "$(scripts/source.sh "$deb" "$version")" "$deb/onbeat_$version.orig.tar.gz"
# The files are as new as this build: cargo compares times, and a commit may be older than the last build.
tar -C "$deb/onbeat" --strip-components=1 --touch -xzf "$deb/onbeat_$version.orig.tar.gz"
cp -r packaging/debian "$deb/onbeat/debian"
cat >"$deb/onbeat/debian/changelog" <<END
onbeat ($version-1) unstable; urgency=medium

  * See changelog.gz for what has changed.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -R -d "@$SOURCE_DATE_EPOCH")
END

cd "$deb/onbeat"
if [ -n "${1-}" ]; then
    dpkg-buildpackage --no-sign --host-arch "$1" --build=any
else
    dpkg-buildpackage --no-sign --build=source,binary
fi
echo
ls -l "$deb"/*.deb
