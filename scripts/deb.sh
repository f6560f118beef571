#!/usr/bin/env bash
# Makes the Debian packages of the commit that is checked out, from its source tarball, in $TARGET_DIR/deb. They
# install on this Debian and newer ones.
#
# ONBEAT is a binary to package in place of building one.
#
# usage: scripts/deb.sh [ARCHITECTURE]    # arm64: those for another architecture, cross-built, in $TARGET_DIR/deb-arm64
#        scripts/deb.sh source    # the source package with the crates in the archive VENDOR, for SERIES (unstable)
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
[ -z "${VENDOR-}" ] || cp "$VENDOR" "$deb/onbeat_$version.orig-vendor.tar.gz"
[ -z "${VENDOR-}" ] || tar -C "$deb/onbeat" -xzf "$VENDOR"
cat >"$deb/onbeat/debian/changelog" <<END
onbeat ($version-1${SERIES:+~${SERIES}1}) ${SERIES:-unstable}; urgency=medium

  * See changelog.gz for what has changed.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -R -d "@$SOURCE_DATE_EPOCH")
END

cd "$deb/onbeat"
# The compiler is whatever is here, where a builder of a distribution has its own.
case "${1-}" in
'') dpkg-buildpackage --no-sign --build-profiles=pkg.onbeat.rustup --build=source,binary ;;
source) dpkg-buildpackage --no-sign --no-check-builddeps --no-pre-clean --build=source ;;
*) dpkg-buildpackage --no-sign --build-profiles=pkg.onbeat.rustup --host-arch "$1" --build=any ;;
esac
echo
ls -l "$deb"/onbeat_*
