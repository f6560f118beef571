#!/bin/sh
# Every header compiles in strict ISO C and in GNU C, and in C++, at each level of optimisation, without a warning. What
# is not a block is refused: an end without a try, a handler without its block, a block without its end.
cd "$(dirname "$0")/.." || exit 1
# shellcheck disable=SC1091
. tests/missing.sh
status=0
source=$(mktemp)
trap 'rm -f "$source"' EXIT

cat >"$source" <<'CODE'
#include <onbeat/within.h>
#include <onbeat/reserve.h>
int late(int retry);
int late(int retry)
{
	volatile int late = 0;
	if (retry)
		onbeat_try_within_rel (ONBEAT_MS(1)) {
			onbeat_within_disable();
			onbeat_within_enable();
			for (;;)
				;
		}
		onbeat_finally {
			late++;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				onbeat_try_within_wcet (ONBEAT_MS(2) - onbeat_delay()) {
					late++;
				}
				onbeat_handle
				onbeat_end;
				onbeat_rethrow();
			}
		onbeat_end;
	else
		late = 2;
	return late;
}
CODE

compile() {
	"$@" -Wall -Wextra -Wshadow -pedantic -Werror -Wno-clobbered -Wno-unknown-warning-option -Iinclude -c \
		-o /dev/null "$source" || {
		echo "refused: $*"
		status=1
	}
}

for compiler in gcc clang; do
	is_here "$compiler" || continue
	for dialect in c99 c11 c17 c2x gnu99 gnu11 gnu17 gnu2x; do
		compile "$compiler" "-std=$dialect" -O2 -x c
	done
	for level in -O0 -O1 -O2 -O3 -Os; do
		compile "$compiler" -std=c11 "$level" -x c
	done
done
# C++20 has something against ++ on what is volatile.
sed -i 's/late++/late = late + 1/' "$source"
for compiler in g++ clang++; do
	is_here "$compiler" || continue
	for dialect in c++11 c++14 c++17 c++20; do
		compile "$compiler" "-std=$dialect" -O2 -x c++
	done
done

is() { # TAKEN|REFUSED STATEMENTS
	was=REFUSED
	printf '#include <onbeat/%s>\nvoid f(void);\nvoid f(void)\n{\n%s\n}\n' "$header" "$2" |
		"${CC:-cc}" -std="$standard" -Iinclude -fsyntax-only -x "$language" - 2>/dev/null && was=TAKEN
	[ "$1" = $was ] || {
		echo "$was: $2"
		status=1
	}
}

language=c standard=gnu11 header=within.h
is TAKEN 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { } onbeat_end;'
is REFUSED '{ } onbeat_handle onbeat_when (onbeat_exception) { } onbeat_end;'
is REFUSED 'onbeat_end;'
is REFUSED 'onbeat_when (onbeat_exception) { }'
is REFUSED 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { }'
is REFUSED 'onbeat_try { } onbeat_end;'
is TAKEN 'onbeat_try { } onbeat_finally { } onbeat_handle onbeat_end;'
is REFUSED 'onbeat_try { } onbeat_handle onbeat_end; onbeat_finally { }'
is REFUSED 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { onbeat_delay(1); } onbeat_end;'
is REFUSED 'onbeat_rethrow();'
is TAKEN 'if (1) onbeat_try { } onbeat_handle onbeat_end; else f();'
# A time in seconds would be none at all.
is TAKEN 'onbeat_try_within_rel (ONBEAT_MS(0.5)) { } onbeat_handle onbeat_end;'
is REFUSED 'onbeat_try_within_rel (0.5) { } onbeat_handle onbeat_end;'
is REFUSED 'onbeat_try_checked_wcet (1e6) { } onbeat_handle onbeat_end;'
# A block belongs to a scope.
language=c++ standard=gnu++17 header=within.hpp
is TAKEN 'onbeat::block one(onbeat::relative(onbeat::nanoseconds(1)));'
is REFUSED 'new onbeat::block(onbeat::relative(onbeat::nanoseconds(1)));'
[ $status = 0 ] || exit 1
skip_if_missing
