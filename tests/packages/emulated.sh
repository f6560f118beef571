#!/usr/bin/env bash
# Boots an arm64 kernel of Debian in an emulated machine, in virtual time, with the program of the arm64 package: the
# BPF tracer loads, and a periodic program gets a reservation of its period.
#
# usage: tests/packages/emulated.sh FOLDER    # with the packages
set -euo pipefail
cd "$(dirname "$0")/../.."

for command in qemu-system-aarch64 aarch64-linux-gnu-gcc cpio; do
    command -v "$command" >/dev/null || {
        echo "there is no $command"
        exit 77
    }
done
package=$(realpath "$1/onbeat_$(scripts/version.sh)-1_arm64.deb")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/root/{bin,dev,lib/aarch64-linux-gnu,proc,run,sys,tmp} "$work/fetched"
kernel=$(apt-cache depends linux-image-cloud-arm64:arm64 2>/dev/null | sed -n 's/.*Depends: //p')
[ -n "$kernel" ] || {
    echo "apt has no packages for arm64: scripts/setup.sh cross adds them"
    exit 77
}
(cd "$work/fetched" && apt-get download -qq "${kernel%:arm64}:arm64" busybox-static:arm64 2>&1)
for fetched in "$work"/fetched/*.deb "$package"; do
    dpkg-deb --extract "$fetched" "$work/unpacked"
done
root=$work/root
cp "$work/unpacked/bin/busybox" "$work/unpacked/usr/bin/onbeat" "$root/bin"
for name in sh mount cat poweroff; do ln -s busybox "$root/bin/$name"; done
aarch64-linux-gnu-gcc -O1 -static -o "$root/bin/periodic" tests/packages/emulated.c
# What the package depends on, as the cross-build found it.
for library in libc.so.6 libelf.so.1 libgcc_s.so.1 libm.so.6 libz.so.1; do
    cp -L "$(aarch64-linux-gnu-gcc -print-file-name="$library")" "$root/lib/aarch64-linux-gnu"
done
cp -L "$(aarch64-linux-gnu-gcc -print-file-name=ld-linux-aarch64.so.1)" "$root/lib"
cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
onbeat doctor
onbeat run --always --log /tmp/decisions.jsonl -- periodic 250
echo "ended: $?"
cat /tmp/decisions.jsonl
poweroff -f
INIT
chmod 755 "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"
status=0
timeout --kill-after 10 300 qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on -m 1024 -smp 1 -accel tcg,thread=single \
    -icount shift=1,sleep=off -nodefaults -no-user-config -display none -no-reboot -serial "file:$work/serial" \
    -kernel "$work"/unpacked/boot/vmlinuz-* -initrd "$work/initrd" \
    -append 'console=ttyAMA0 loglevel=4 panic=-1 rdinit=/init cryptomgr.notests=1' || status=$?
says() { # PATTERN
    tr -d '\r' <"$work/serial" | grep -qE "$1" || {
        cat "$work/serial"
        echo "the emulated machine does not say: $1 (emulator's status $status)"
        exit 1
    }
}
says '^tracer bpf +full '
says '^  periodic +[0-9]+ +40 ms '
says '"comm":"periodic","what":"reserved","why":"it has a period of 40(\.[0-9]+)? ms, seen in'
says '^ended: 0$'
