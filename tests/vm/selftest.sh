#!/usr/bin/env bash
# Tests of the test bed: what has to be a failure is one, for the reason that it is; and a run repeats.
#
# Each file in tests/vm/selftest and papers/vm/selftest is a case. If its head has a line `# told: WORDS`, run.sh has to fail and say
# these words; else it is run twice, and everything that the two runs leave behind has to be the same.
#
# usage: tests/vm/selftest.sh [--jobs N] [CASE.sh...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1-}" = --jobs ]; then
    jobs=$2
    shift 2
    [ $# -gt 0 ] || set -- "$here"/selftest/*.sh "$here"/../../papers/vm/selftest/*.sh
    # Once here, so that not everyone has to wait for it.
    "$here/kernel.sh" >/dev/null
    printf '%s\0' "$@" | xargs -0 -n 1 -P "$jobs" "$here/selftest.sh"
    exit
fi
[ $# -gt 0 ] || set -- "$here"/selftest/*.sh "$here"/../../papers/vm/selftest/*.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fails_as_told() { # CASE WORDS
    ! "$here/run.sh" "$1" >"$work/said" 2>&1 && grep -qF "$2" "$work/said"
}

repeats() { # CASE
    local time
    for time in once twice; do
        "$here/run.sh" --results "$work/$time" "$1" >>"$work/said" 2>&1 || return 1
    done
    diff -r "$work/once" "$work/twice" >>"$work/said" 2>&1
}

failed=0
for file; do
    [ -f "$file" ] || continue
    : >"$work/said"
    told=$(sed -n 's/^# told: //p' "$file")
    verdict=ok
    if [ -n "$told" ]; then
        fails_as_told "$file" "$told" || verdict=FAILED
    else
        repeats "$file" || verdict=FAILED
    fi
    echo "test vm bed: $(basename "$file" .sh) ... $verdict"
    if [ "$verdict" != ok ]; then
        failed=1
        [ -z "$told" ] || echo "     it was to fail, and to say: $told"
        sed 's/^/     /' "$work/said"
    fi
done
exit "$failed"
