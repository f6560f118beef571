#!/bin/sh
# A program may dlopen the library however little room for thread-local variables is left, also with musl.
# ONBEAT_FORM is linux or posix.
cd "$(dirname "$0")/.." || exit 1
# shellcheck disable=SC1091
. tests/missing.sh
form=${ONBEAT_FORM:-linux}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
	echo "$*"
	exit 1
}

cat >"$out/program.c" <<'CODE'
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
	void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	int (*max_depth)(void);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&max_depth = dlsym(library, "onbeat_max_depth");
	return !max_depth || max_depth() <= 0;
}
CODE
make --no-print-directory -s NOTIFY="$form" OUT="$out/build" >/dev/null || fail "it cannot be built"
library="$out/build/$form-release/libonbeat.so.0"
cc -o "$out/program" "$out/program.c" -ldl || fail "the program cannot be built"
"$out/program" "$library" || fail "it cannot be loaded"
# glibc keeps 512 bytes for all libraries that are loaded late and want their variables at hand.
bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
[ $((${bytes:-0})) -le 64 ] || fail "its thread-local variables take $((bytes)) bytes"

is_here musl-gcc || skip_if_missing
make --no-print-directory -s NOTIFY=posix CC=musl-gcc OUT="$out/musl" >"$out/said" 2>&1 || {
	cat "$out/said"
	# The kernel's headers may be missing there.
	is_missing "it cannot be built with musl"
	skip_if_missing
}
musl-gcc -o "$out/program" "$out/program.c" || fail "the program cannot be built with musl"
"$out/program" "$out/musl/posix-release/libonbeat.so.0" || fail "it cannot be loaded with musl"
