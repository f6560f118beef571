#!/usr/bin/env bash
# Boots the Debian in a folder, with its own systemd as the first process of namespaces of its own, runs a script in
# it, and halts it. The kernel, and with it the CPUs' scheduling, is this machine's.
#
# usage (as root): tests/packages/container.sh ROOT SCRIPT    # SCRIPT: a path below ROOT
set -euo pipefail

if [ "${1-}" != --inside ]; then
    root=$(realpath "$1")
    self=$(realpath "$0")
    unified=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET) || {
        echo "systemd needs cgroup v2, and none is mounted here" >&2
        exit 77
    }
    group=$unified/onbeat-packages-$$
    mkdir "$group"
    unshare=
    # shellcheck disable=SC2317 # the trap calls it
    end() {
        # It takes its first process along, and that one the whole namespace.
        kill -KILL "$unshare" 2>/dev/null || true
        wait "$unshare" 2>/dev/null || true
        for _ in $(seq 100); do
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
            sleep 0.1
        done
    }
    trap end EXIT
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child "$self" --inside "$root"
    ) >"$root.boot" 2>&1 </dev/null &
    unshare=$!
    first=
    for _ in $(seq 300); do
        first=$(tr -d ' ' 2>/dev/null <"/proc/$unshare/task/$unshare/children") && [ -n "$first" ] && break
        sleep 0.1
    done
    inside() { nsenter --target "$first" --all env -i -C / PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
    state=none
    for _ in $(seq 300); do
        # What a container lacks may fail to start; the script says what has to run.
        state=$(inside systemctl is-system-running 2>/dev/null) || true
        case "$state" in running | degraded) break ;; esac
        sleep 0.2
    done
    case "$state" in
    running | degraded) ;;
    *)
        cat "$root.boot" >&2
        echo "its systemd did not start within a minute: $state" >&2
        exit 1
        ;;
    esac
    status=0
    inside "$2" || status=$?
    exit "$status"
fi

root=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
# The kernel's settings are this machine's; but for the one that onbeat writes, as it is.
mount -t proc proc "$root/mnt"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --bind "$root/mnt/sys/kernel/sched_rt_runtime_us" "$root/proc/sys/kernel/sched_rt_runtime_us"
umount "$root/mnt"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
cd "$root"
mkdir -p "$root/run/old"
pivot_root . run/old
umount -l /run/old
rmdir /run/old
# No module of the kernel, no clock and no disk is its business.
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set -sys_module,-sys_time,-sys_boot,-sys_rawio,-mknod /sbin/init
