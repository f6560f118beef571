#!/usr/bin/env bash
# Has systemd start the service by its unit, sandbox and all, and the service track a program there: the threads have to
# have the numbers that the kernel's tracer knows, so nothing is in a namespace of processes, and systemd is the manager
# of a user (root), not the first process. It is Debian 12's: a later one takes such a unit's capabilities away.
#
# usage (as root): tests/packages/sandbox.sh FOLDER    # with the packages
set -euo pipefail
here=$(dirname "$(realpath "$0")")

if [ "${1-}" != --inside ]; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "the unit is started as root"
        exit 77
    fi
    unified=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET) || {
        echo "systemd needs cgroup v2, and none is mounted here"
        exit 77
    }
    tarball=$("$here/root.sh" bookworm)
    root=$(mktemp -d)
    group=$unified/onbeat-sandbox-$$
    mkdir "$group"
    # shellcheck disable=SC2317 # the trap calls it
    end() {
        for _ in $(seq 100); do
            find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null | while read -r process; do
                kill -KILL "$process" 2>/dev/null || true
            done
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
            sleep 0.1
        done
        rm -rf --one-file-system "$root"
    }
    trap end EXIT
    chmod 755 "$root"
    tar -C "$root" -xf "$tarball"
    find "$1" -maxdepth 1 -name 'onbeat_*.deb' -exec cp {} "$root/root" \;
    cp "$here/in-sandbox.sh" "$root/root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends /root/*.deb' >"$root/tmp/log" 2>&1 || {
        cat "$root/tmp/log"
        echo "the package cannot be installed"
        exit 1
    }
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        exec unshare --mount --net --cgroup "$0" --inside "$root"
    )
    exit
fi

root=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount --rbind /dev "$root/dev"
cd "$root"
mkdir "$root/run/old"
pivot_root . run/old
umount -l /run/old
rmdir /run/old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root bash /root/in-sandbox.sh
