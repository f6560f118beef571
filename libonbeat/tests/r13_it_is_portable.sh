#!/bin/sh
# Requirement 13: the timing exceptions are portable. The portable form is compiled with nothing declared
# but POSIX.1-2008 and C11 and may include no other header; both forms pass the tests of the requirements with
# a second compiler, the portable one also on a second C library.
# ONBEAT_FORM is linux or posix.
cd "$(dirname "$0")/.." || exit 1
# shellcheck disable=SC1091
. tests/missing.sh
form=${ONBEAT_FORM:-posix}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

posix_headers='errno pthread sched setjmp signal stdatomic stdbool stddef stdint stdio stdlib string time unistd'
portable='block thread source notify_posix perf_clock_none benchmark'

pass_the_tests() {
	for test in tests/requirements*.c tests/r[01][0-9]_*.c tests/exceptions*.c; do
		if ! "$@" -Iinclude -D_DEFAULT_SOURCE -o "$out/test" "$test" "$out"/*.o -pthread; then
			echo "$test cannot be built with $*"
			exit 1
		fi
		if ! timeout 300 "$out/test" >"$out/said" 2>&1; then
			cat "$out/said"
			echo "$test failed, built with $*"
			exit 1
		fi
	done
	rm -f "$out"/*.o
}

if [ "$form" = linux ]; then
	is_here clang || skip_if_missing
	make --no-print-directory -s NOTIFY=linux CC=clang OUT="$out/build" >/dev/null || exit 1
	cp "$out"/build/linux-release/*.o "$out"
	pass_the_tests clang -std=c11 -D_GNU_SOURCE
	exit 0
fi

for source in $portable; do
	headers=$(sed -n 's|^#include <\(.*\)\.h>|\1|p' "src/$source.c" src/within.h include/onbeat/within.h)
	for header in $headers; do
		case " $posix_headers " in
		*" $header "*) ;;
		*)
			echo "src/$source.c needs <$header.h>, which POSIX does not have"
			exit 1
			;;
		esac
	done
done
for compiler in cc clang musl-gcc; do
	is_here "$compiler" || continue
	for source in $portable; do
		"$compiler" -std=c11 -pedantic -Wall -Wextra -Werror -O2 -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc \
			-c -o "$out/$source.o" "src/$source.c" || exit 1
	done
	pass_the_tests "$compiler" -std=c11 -D_POSIX_C_SOURCE=200809L
done
skip_if_missing
