#!/usr/bin/env bash
# Runs every test of the workspace, of libonbeat and of python, and those of tests/packages and tests/vm that take
# seconds; then names each one that ran, repeats what those said that failed, and closes with
# `N passed, N failed, N skipped`. With --build it only builds what the workspace's tests need.
#
# Cargo runs one test binary after the other, so tests on the live kernel never compete with those
# of another binary. A test that cannot run here prints `skipped: NAME: REASON` and passes; with CI
# set it fails instead.
#
# part() calls functions by their names.
# shellcheck disable=SC2317
set -euo pipefail
cd "$(dirname "$0")/.."

# Programs and tests in one go: for programs alone, cargo would build the crates anew, because some have fewer
# features then.
status=0
in_both() { # COMMAND...: in both workspaces
    local failed=0
    "$@" || failed=1
    [ ! -d papers ] || env -C papers "$@" || failed=1
    return "$failed"
}
[ -z "${CARGO_TARGET_DIR-}" ] || CARGO_TARGET_DIR=$(realpath -m "$CARGO_TARGET_DIR")
in_both cargo build --workspace --lib --bins --tests --examples || status=1
[ "${1-}" != --build ] || exit "$status"

output=$(mktemp -d)
libonbeat=$(mktemp -d)
running=
trap '[ -z "$running" ] || kill "$running" 2>/dev/null; rm -rf "$output" "$libonbeat"' EXIT
times=

# A part of the tests has failed. If that is no test's failure, it did not build, or a test binary died.
broke() { # PART
    status=1
    grep -qE '^test .* \.\.\. FAILED$' "$output/$1" ||
        printf 'test %s: all ... FAILED\n%s\n' "$1" "$(tail -n 40 "$output/$1" | sed 's/^/     /')" >>"$output/$1"
}

# Runs a part of the tests and shows what it says, through a filter. What a test has left running would hold a pipe open
# without end: the part writes to a file, and what still has that open is a failure of its own, and ended.
part() { # PART FILTER COMMAND...
    local part=$1 filter=$2 said=$output/said shown failed='' began=$SECONDS
    shift 2
    : >"$said"
    sleep infinity &
    running=$!
    disown "$running"
    tail -n +1 -f --pid="$running" "$said" | "$filter" | tee "$output/$part" &
    shown=$!
    # In the foreground: what a shell starts in the background ignores SIGINT, and so would the tests' programs.
    "$@" >>"$said" 2>&1 || failed=1
    kill "$running"
    running=
    wait "$shown"
    end_leftovers "$said" | tee -a "$output/$part"
    rm "$said"
    [ -z "$failed" ] || broke "$part"
    times+="$part $((SECONDS - began)) s, "
}

# Processes that have the file open: guards of killed programs end by themselves within a second.
with_open() { # FILE
    { find /proc/[0-9]*/fd -lname "$1" 2>/dev/null || true; } | cut -d / -f 3 | sort -u
}

end_leftovers() { # FILE
    local leftovers name
    for _ in {1..50}; do
        leftovers=$(with_open "$1")
        [ -n "$leftovers" ] || return 0
        sleep 0.1
    done
    for process in $leftovers; do
        name=$(tr '\0' ' ' <"/proc/$process/cmdline") || continue
        kill -KILL "$process" || continue
        echo "test a process outlived its test: $name... FAILED"
    done
}

# Of what tests that passed have said, only that they were skipped.
skips_alone() {
    sed -u '/^successes:$/,/^failures:$\|^test result: /{/^skipped: \|^failures:$\|^test result: /!d}'
}

# The programs that cargo has just built, on a kernel in virtual time: there a busy machine changes nothing.
in_the_virtual_machine() {
    local status=0
    ONBEAT_VM_PATH=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
    export ONBEAT_VM_PATH
    tests/vm/kernel.sh >/dev/null || status=$?
    if [ "$status" = 77 ] && [ -z "${CI-}" ]; then
        echo "test vm ... skipped"
        return 0
    fi
    [ "$status" = 0 ] || return "$status"
    tests/vm/selftest.sh --jobs 2 || status=1
    tests/vm/run.sh --quick --jobs 2 || status=1
    return "$status"
}

part summary cat tests/summary/run.sh
part cargo skips_alone in_both cargo test --workspace --lib --bins --tests --examples --no-fail-fast -- --show-output
awk -f scripts/unfinished.awk "$output/cargo" >"$output/unfinished"
part libonbeat cat make --no-print-directory -j "$(nproc)" -C libonbeat test-quick OUT="$libonbeat"
part player cat make --no-print-directory -C libonbeat/examples/player test OUT="$libonbeat"
# Debian's Python, because setup.sh installs Debian's packages for it.
part python cat /usr/bin/python3 python/tests/run.py
part packages cat env TARGET_DIR="${CARGO_TARGET_DIR:-target}" tests/packages/run.sh --quick
part vm cat in_the_virtual_machine
! grep -qE '^test .* \.\.\. FAILED$' "$output"/* || status=1

count() { cat "$output"/* | grep -cE "$1" || true; }

# A Rust test that skips itself has passed, for its runner; a C test has not.
skipped_rust=$(count '^skipped: ')
skipped=$((skipped_rust + $(count '^test .* \.\.\. skipped')))
passed=$(($(count '^test .* \.\.\. ok$') - skipped_rust))
failed=$(count '^test .* \.\.\. FAILED$')

echo
echo "tests that ran:"
cat "$output"/* | grep -E '^test .* \.\.\. (ok$|FAILED$|skipped)|^skipped: ' || true
if [ "$status" -ne 0 ]; then
    echo
    echo "what failed:"
    cat "$output"/* | awk -f scripts/failed.awk
fi
if [ "$passed" -eq 0 ]; then
    echo "no test ran" >&2
    status=1
fi
echo
echo "took: ${times%, }"
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
