#!/usr/bin/env bash
# Packs an initrd: busybox, the guest's init, the named programs with their libraries, and files.
#
# A word is a program to be found in PATH (or in ONBEAT_VM_PATH, first), NAME.c for one of ours in
# programs/ or papers/experiments/workloads/, or FROM:TO for a plain file.
#
# usage: tests/vm/initrd.sh OUT.cpio KERNEL_FOLDER CASE.sh [PROGRAM | FROM:TO]...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 kernel=$2 case_file=$3
shift 3

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,sbin,usr/bin,proc,sys,dev,tmp,run,results,lib/modules,etc}
PATH="${ONBEAT_VM_PATH:-}:$PATH:/usr/sbin:/sbin"

busybox=$(command -v busybox)
cp "$busybox" "$root/bin/busybox"
for name in $("$busybox" --list); do
    [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
done

# The dynamic linker and every library, at the place where the program looks for it.
libraries_of() {
    ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' || true
}

add_program() {
    local path library
    if ! path=$(command -v "$1"); then
        echo "tests/vm: no program '$1' to put into the guest: install it, or name its folder in ONBEAT_VM_PATH" >&2
        exit 1
    fi
    # Without what only a debugger reads the guest unpacks it sooner. A script has nothing to strip.
    strip --strip-debug -o "$root/usr/bin/$(basename "$path")" "$path" 2>/dev/null ||
        cp -L "$path" "$root/usr/bin/$(basename "$path")"
    for library in $(libraries_of "$path"); do
        mkdir -p "$root$(dirname "$library")"
        [ -e "$root$library" ] || cp -L "$library" "$root$library"
    done
}

# Threads that end load it by themselves; no program names it.
unwinder=$(ldconfig -p | awk '/libgcc_s.so.1.*x86-64/ && !path { path = $NF } END { print path }')
mkdir -p "$root$(dirname "$unwinder")"
cp -L "$unwinder" "$root$unwinder"

for word; do
    case "$word" in
    *:*)
        mkdir -p "$root/$(dirname "${word#*:}")"
        cp -rL "${word%%:*}" "$root/${word#*:}"
        ;;
    *.c)
        source=$here/programs/$word
        [ -f "$source" ] || source=$here/../../papers/experiments/workloads/$word
        gcc -O2 -Wall -Wextra -Werror -static -I "$here/../../libonbeat/include" -o "$root/usr/bin/${word%.c}" "$source"
        ;;
    *) add_program "$word" ;;
    esac
done

cp "$here/guest/init" "$root/init"
cp "$here/guest/lib.sh" "$root/lib.sh"
cp "$case_file" "$root/case.sh"
cp -r "$kernel/modules" "$root/lib/"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
chmod +x "$root/init"

# Sorted, with fixed times and owners: the same input gives the same image, and so the same run.
(cd "$root" && find . -exec touch -hd @0 {} + && find . -print0 | LC_ALL=C sort -z |
    cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) >"$out"
