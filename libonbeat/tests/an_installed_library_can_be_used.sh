#!/bin/sh
# Installs the library under a folder of its own and builds a program against that alone, through pkg-config:
# shared and static, as C and as C++; runs them, finds a man page, and removes it.
cd "$(dirname "$0")/.." || exit 1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
	echo "$*"
	exit 1
}

make --no-print-directory -s install NOTIFY="${ONBEAT_FORM:-linux}" OUT="$root/build" DESTDIR="$root/image" \
	PREFIX=/opt/onbeat >/dev/null || fail "it cannot be installed"
installed="$root/image/opt/onbeat"
export PKG_CONFIG_PATH="$installed/lib/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root/image"

compile() {
	# Word splitting is meant: these are lists of flags.
	# shellcheck disable=SC2046,SC2086
	(cd "$root" && "$@" -Wall -o program $(pkg-config --cflags onbeat)) || fail "this cannot be built: $*"
}

shared=$(pkg-config --libs onbeat)
# As a program links it that carries its library along: the archive by name, and what it needs itself.
static="$installed/lib/libonbeat.a $(pkg-config --libs-only-l --static onbeat | sed 's/-lonbeat//')"
cat >"$root/program.c" <<'END'
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <onbeat/reserve.h>
#include <onbeat/within.h>
int main()
{
	volatile int late = 0;
	onbeat_try_within_rel (ONBEAT_MS(1)) {
		for (;;)
			;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			late = 1;
			onbeat_mdn();
		}
	onbeat_end;
	return late ? 0 : 1;
}
END
cp "$root/program.c" "$root/program.cpp"
for compiler in 'cc -std=gnu11 program.c' 'c++ program.cpp'; do
	# shellcheck disable=SC2086
	{
		compile $compiler $shared
		LD_LIBRARY_PATH="$installed/lib" "$root/program" || fail "$compiler, shared: it failed"
		compile $compiler $static
		"$root/program" || fail "$compiler, static: it failed"
	}
done
ldd "$root/program" | grep -q onbeat && fail "the static program needs the shared library"

# What a program is linked against is the versioned name, and it is no other than what the headers declare.
readelf -d "$installed/lib/libonbeat.so" | grep -q 'SONAME.*libonbeat\.so\.0' || fail "no versioned name"
# A signal may be on its way when a program closes it: it stays mapped.
readelf -d "$installed/lib/libonbeat.so" | grep -q NODELETE || fail "it can be unmapped"
# Its functions are looked up when it is loaded, not in the signal handler.
readelf -d "$installed/lib/libonbeat.so" | grep -q 'BIND_NOW\|FLAGS.*NOW' || fail "it is bound lazily"
nm -D --defined-only "$installed/lib/libonbeat.so" | awk '{ sub(/@.*/, "", $3); print $3 }' |
	while read -r symbol; do
		[ "${symbol#ONBEAT_}" != "$symbol" ] || grep -qw "$symbol" "$installed"/include/onbeat/*.h ||
			fail "$symbol is exported, and no header declares it"
	done || exit 1
if command -v mandoc >/dev/null; then
	(cd "$installed/share/man" && mandoc man3/onbeat_try_within_rel.3) >"$root/page" || fail "no page onbeat_try_within_rel"
	grep -q CLOCK_MONOTONIC "$root/page" || fail "the page onbeat_try_within_rel is not that of onbeat_try"
fi
make --no-print-directory -s uninstall DESTDIR="$root/image" PREFIX=/opt/onbeat >/dev/null || fail "it cannot be removed"
left=$(find "$root/image" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
