#!/usr/bin/env bash
# Builds onbeat and onbeat-node as static programs, with musl in place of the system's C library, and prints the folder that
# they are in. They run on any Linux of their architecture.
#
# libelf and zlib come from the sources in the crate libbpf-sys, because Debian's are compiled for glibc.
#
# usage: scripts/static.sh x86_64|aarch64
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$1
triple=$arch-unknown-linux-musl
target=$(realpath -m "${TARGET_DIR:-target}")
made=$target/static-libraries/$arch
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
CC=$arch-linux-musl-gcc
# gcc would call functions of its own library for atomic operations, which rustc does not link.
atomics=
[ "$arch" != aarch64 ] || atomics=-mno-outline-atomics
sources=$(cargo metadata --locked --format-version 1 --filter-platform "$triple" |
    python3 -c 'import json, os, sys
print(*(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "libbpf-sys"))')

# The kernel's own headers are no part of musl.
headers="-idirafter /usr/include/$arch-linux-gnu -idirafter /usr/include"
rm -rf "$made"
mkdir -p "$made"
: >"$made/config.h"
library() { # NAME FLAGS SOURCE...
    local name=$1 flags=$2 source
    shift 2
    mkdir "$made/$name"
    for source; do
        # Word splitting is meant: no flag holds a space.
        # shellcheck disable=SC2086
        "$CC" -O2 -fPIC -w -D_GNU_SOURCE -ffile-prefix-map="$sources=/usr/share/cargo" $atomics $flags -c "$source" \
            -o "$made/$name/$(basename "$source" .c).o"
    done
    ar rcs "$made/lib$name.a" "$made/$name"/*.o
}
library z -DHAVE_UNISTD_H "$sources"/zlib/*.c
# What elfutils' configure finds with musl.
library elf "-std=gnu11 -DHAVE_ERR_H -DHAVE_DECL_MEMRCHR=1 -DHAVE_DECL_RAWMEMCHR=0 -DHAVE_DECL_POWEROF2=1
    -DHAVE_DECL_MEMPCPY=1 -DHAVE_DECL_REALLOCARRAY=1 -DHAVE_VISIBILITY -DHAVE_GCC_STRUCT -DHAVE_FALLTHROUGH
    -DHAVE_STDATOMIC_H -include $sources/elfutils/lib/eu-config.h -I$made -I$sources/elfutils/lib
    -I$sources/elfutils/libelf -I$sources/zlib" \
    "$sources"/elfutils/libelf/*.c "$sources"/elfutils/lib/{crc32,crc32_file,next_prime}.c

shell_name=${triple//-/_}
export "CC_$shell_name=$CC" "CFLAGS_$shell_name=$atomics"
export "CARGO_TARGET_${shell_name^^}_LINKER=$arch-linux-gnu-gcc"
export "CARGO_TARGET_${shell_name^^}_RUSTFLAGS=--remap-path-prefix=$PWD=/usr/src/onbeat --remap-path-prefix=$CARGO_HOME=/usr/share/cargo"
# The same crate is built for the build scripts, too, with glibc.
export "LIBBPF_SYS_LIBRARY_PATH_$shell_name=$made"
export LIBBPF_SYS_EXTRA_CFLAGS="$headers -I$sources/elfutils/libelf -I$sources/zlib"
CARGO_TARGET_DIR=$target cargo build --release --locked -p onbeat -p onbeat-node --target "$triple" >&2
echo "$target/$triple/release"
