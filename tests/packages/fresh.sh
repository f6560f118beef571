#!/usr/bin/env bash
# Boots a fresh Debian, and has inside.sh install, use and purge the packages in a folder there.
#
# usage (as root): tests/packages/fresh.sh bookworm|trixie FOLDER
set -euo pipefail
here=$(dirname "$0")

if [ "$(id -u)" -ne 0 ]; then
    echo "a fresh Debian is booted as root"
    exit 77
fi
tarball=$("$here/root.sh" "$1")
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root" "$root.boot"' EXIT
chmod 755 "$root"
tar -C "$root" -xf "$tarball"
mkdir "$root/root/packages"
find "$2" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$root/root/packages" \;
cp "$here/inside.sh" "$root/root"
mkdir "$root/root/source"
git -C "$here/../.." archive HEAD | tar -C "$root/root/source" -x
# What they depend on is fetched here; the fresh Debian has no network.
cp /etc/resolv.conf "$root/etc/resolv.conf"
chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends --download-only /root/packages/*.deb rtkit make' >"$root/tmp/log" 2>&1 || {
    cat "$root/tmp/log"
    echo "what the packages depend on cannot be had"
    exit 1
}
"$here/container.sh" "$root" /root/inside.sh
