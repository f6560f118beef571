#!/usr/bin/env bash
# Makes a fresh Debian, once, and prints the path of its tarball: what debootstrap installs, with systemd, a bus and
# polkit, and a compiler to try the library with. It comes from the archive that this machine's apt already uses.
#
# Ends with 77 where there is none.
#
# usage (as root): tests/packages/root.sh bookworm|trixie
set -euo pipefail

suite=$1
cache=${ONBEAT_PACKAGES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onbeat/packages}
tarball=$cache/$suite.tar
mkdir -p "$cache"
# Two at a time would fetch twice.
exec 9>"$cache/$suite.lock"
flock 9
if [ -s "$tarball" ]; then
    echo "$tarball"
    exit 0
fi

# shellcheck disable=SC2016 # apt-get fills these in, not the shell
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
    grep -v security | head -n 1)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$archive" ] || [ ! -e "$keyring" ]; then
    echo "tests/packages: a fresh Debian comes from Debian's archive, and this machine's apt has none:" \
        "put one into $tarball by hand, or run this on a Debian" >&2
    exit 77
fi

work=$(mktemp -d "$cache/make.XXXXXX")
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
# debootstrap does not order what packages need of each other while they are set up; apt does. Nothing is started here.
make_root() {
    debootstrap --variant=minbase --keyring="$keyring" "$suite" "$root" "$archive" &&
        cp /etc/resolv.conf "$root/etc/resolv.conf" &&
        printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" &&
        chmod 755 "$root/usr/sbin/policy-rc.d" &&
        DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends \
            systemd-sysv dbus polkitd gcc libc6-dev pkg-config &&
        rm "$root/usr/sbin/policy-rc.d" &&
        chroot "$root" useradd --create-home alice &&
        chroot "$root" apt-get clean
}
make_root >"$work/log" 2>&1 </dev/null || {
    tail -n 30 "$work/log" >&2
    echo "tests/packages: no fresh $suite could be made" >&2
    exit 1
}
tar -C "$root" -cf "$work/tar" .
mv "$work/tar" "$tarball"
echo "$tarball"
