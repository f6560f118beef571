#!/bin/sh
# Runs the library's test programs, each with a limit of time; says of each how it went, and the sum.
# Usage: run.sh VARIANT PROGRAM...; UNDER is what the programs are run under, if anything.
variant=$1
shift
# What a benchmark build writes when it ends is nobody's here.
written=$(mktemp -d)
trap 'rm -rf "$written"' EXIT
export ONBEAT_BENCHMARK_OUT="$written/blocks"
passed=0 failed=0 skipped=0
for program; do
	name=$(basename "$program" | sed 's/^test-//')
	# A script has what it builds run under that.
	case $program in *.sh) under='' ;; *) under=${UNDER:-} ;; esac
	# Word splitting is meant.
	# shellcheck disable=SC2086
	output=$(timeout 600 $under "$program" 2>&1 </dev/null)
	case $? in
	0) passed=$((passed + 1)) result=ok ;;
	77) skipped=$((skipped + 1)) result="skipped: $output" output= ;;
	*) failed=$((failed + 1)) result=FAILED ;;
	esac
	echo "test libonbeat $variant: $name ... $result"
	[ "$result" = FAILED ] && echo "$output" | sed 's/^/     /'
done
echo "libonbeat $variant: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
