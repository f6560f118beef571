#!/bin/sh
# The compiler refuses what is not a block: an end without a try, a handler without its block, a block without
# its end. And it takes the same text with the mistake mended.
cd "$(dirname "$0")/.." || exit 1
status=0 language=c standard=gnu11 header=within.h

compile() {
	printf '#include <onbeat/%s>\nvoid f(void);\nvoid f(void)\n{\n%s\n}\n' "$header" "$1" |
		${CC:-cc} -std=$standard -Iinclude -fsyntax-only -x $language - 2>/dev/null
}

refused() {
	if compile "$1"; then
		echo "this compiles: $1"
		status=1
	fi
}

taken() {
	if ! compile "$1"; then
		echo "this does not compile: $1"
		status=1
	fi
}

taken 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { } onbeat_end;'
refused '{ } onbeat_handle onbeat_when (onbeat_exception) { } onbeat_end;'
refused 'onbeat_end;'
refused 'onbeat_when (onbeat_exception) { }'
refused 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { }'
refused 'onbeat_try { } onbeat_end;'
taken 'onbeat_try { } onbeat_finally { } onbeat_handle onbeat_end;'
refused 'onbeat_try { } onbeat_handle onbeat_end; onbeat_finally { }'
refused 'onbeat_try { } onbeat_handle onbeat_when (onbeat_exception) { onbeat_delay(1); } onbeat_end;'
refused 'onbeat_rethrow();'
taken 'if (1) onbeat_try { } onbeat_handle onbeat_end; else f();'
# A time in seconds would be none at all.
taken 'onbeat_try_within_rel (ONBEAT_MS(0.5)) { } onbeat_handle onbeat_end;'
refused 'onbeat_try_within_rel (0.5) { } onbeat_handle onbeat_end;'
refused 'onbeat_try_checked_wcet (1e6) { } onbeat_handle onbeat_end;'
# A block belongs to a scope.
language=c++ standard=gnu++17 header=within.hpp
taken 'onbeat::block one(onbeat::relative(onbeat::nanoseconds(1)));'
refused 'new onbeat::block(onbeat::relative(onbeat::nanoseconds(1)));'
exit $status
