#!/bin/sh
# Every header compiles in strict ISO C and in GNU C, and in C++, at each level of optimisation, without a warning.
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
[ $status = 0 ] || exit 1
skip_if_missing
