#!/bin/sh
# A listener's call overwrites what lies below the stack pointer, and there an unoptimised function keeps its
# arguments: so no probe's argument may be told to be in memory, however the program was compiled.
cd "$(dirname "$0")/.." || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for level in -O0 -O1 -O2 -Os; do
	${CC:-cc} -std=gnu11 "$level" -Iinclude -c -o "$out/program.o" examples/soft_realtime.c || exit 1
	arguments=$(readelf --notes --wide "$out/program.o" | grep 'Arguments: .*@') || {
		echo "$level: no probe has an argument"
		exit 1
	}
	case $arguments in
	*[\(\[]*)
		echo "$level: in memory: $arguments"
		exit 1
		;;
	esac
done
