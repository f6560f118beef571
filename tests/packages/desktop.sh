#!/usr/bin/env bash
# Boots a fresh Debian 13 with its own kernel in an emulated machine, in virtual time. A user of group audio logs in on the
# console, starts weston, mpv in it, and JACK with two clients, alone and beside 8 CPU hogs, installs the onbeat package with
# apt, logs in again, does the same, and types nothing else. Prints the frames that weston has shown each time, JACK's xruns, and
# the priorities of their threads.
#
# An instruction takes two to the power of SHIFT nanoseconds.
#
# usage (as root): tests/packages/desktop.sh FOLDER    # with the packages
set -euo pipefail
here=$(dirname "$(realpath "$0")")

[ "$(id -u)" -eq 0 ] || {
    echo "a fresh Debian is made as root"
    exit 77
}
for command in qemu-system-x86_64 ffmpeg mke2fs; do
    command -v "$command" >/dev/null || {
        echo "there is no $command"
        exit 77
    }
done
tarball=$("$here/root.sh" trixie)
work=$(mktemp -d)
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$root"
chmod 755 "$work" "$root"
tar -C "$root" -xf "$tarball"
find "$1" -maxdepth 1 -name 'onbeat_*.deb' -exec cp {} "$root/home/alice" \;
cp "$here/desktop/profile.sh" "$root/home/alice/.bash_profile"
ffmpeg -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25:duration=20 -c:v libx264 -g 25 -pix_fmt yuv420p \
    "$root/home/alice/film.mkv"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# What the package depends on is fetched here; the machine has no network.
chroot "$root" sh -c 'apt-get update -qq && export DEBIAN_FRONTEND=noninteractive &&
    apt-get install -y -qq --no-install-recommends linux-image-cloud-amd64 libpam-systemd sudo procps mpv weston jackd2 \
        jack-example-tools stress-ng &&
    apt-get install -y -qq --no-install-recommends --download-only /home/alice/onbeat_*.deb &&
    mv /etc/security/limits.d/audio.conf.disabled /etc/security/limits.d/audio.conf &&
    usermod --shell /bin/bash --append --groups sudo,systemd-journal,audio alice &&
    chown -R alice: /home/alice' >"$work/log" 2>&1 || {
    cat "$work/log"
    echo "the fresh Debian lacks what it needs"
    exit 1
}
rm "$root/usr/sbin/policy-rc.d"
echo 'alice ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/alice"
echo '/dev/vda / ext4 rw 0 1' >"$root/etc/fstab"
echo fresh >"$root/etc/hostname"
echo 127.0.0.1 localhost fresh >"$root/etc/hosts"
mkdir -p "$root/etc/systemd/system/serial-getty@ttyS0.service.d"
printf '[Service]\nExecStart=\nExecStart=-/sbin/agetty --autologin alice --noclear ttyS0 linux\n' \
    >"$root/etc/systemd/system/serial-getty@ttyS0.service.d/autologin.conf"
cp "$root"/boot/vmlinuz-* "$work/kernel"
cp "$root"/boot/initrd.img-* "$work/initrd"
rm -rf "${root:?}"/boot/*
mke2fs -q -t ext4 -d "$root" "$work/disk" 4G
status=0
timeout --kill-after 10 "${SECONDS_AT_MOST:-1500}" qemu-system-x86_64 -machine q35 -accel tcg,thread=single -cpu max -m 2048 -smp 1 \
    -icount "shift=${SHIFT:-0},sleep=off" -nodefaults -no-user-config -display none -no-reboot -serial "file:$work/serial" \
    -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" -kernel "$work/kernel" -initrd "$work/initrd" \
    -append 'root=/dev/vda rw console=ttyS0 quiet systemd.show_status=no cryptomgr.notests=1' || status=$?
tr -d '\r' <"$work/serial" >"$work/said"
[ -z "${RESULTS-}" ] || cp "$work/said" "$RESULTS"
grep -q '^onbeat-desktop: ended$' "$work/said" || {
    tail -n 60 "$work/said"
    echo "the fresh Debian did not come to its end (emulator's status $status)"
    exit 1
}
sed -n 's/^onbeat-desktop: //p' "$work/said"
