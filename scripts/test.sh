#!/usr/bin/env bash
# Runs every test of the workspace and of libonbeat, and those of tests/packages and tests/vm that take seconds; then
# names each one that ran, repeats what those said that failed, and closes with `N passed, N failed, N skipped`.
#
# Cargo runs one test binary after the other, so tests on the live kernel never compete with those
# of another binary. A test that cannot run here prints `skipped: NAME: REASON` and passes; with CI
# set it fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

output=$(mktemp -d)
libonbeat=$(mktemp -d)
trap 'rm -rf "$output" "$libonbeat"' EXIT
status=0

# A part of the tests has failed. If that is no test's failure, it did not build, or a test binary died.
broke() { # PART
    status=1
    grep -qE '^test .* \.\.\. FAILED$' "$output/$1" ||
        printf 'test %s: all ... FAILED\n%s\n' "$1" "$(tail -n 40 "$output/$1" | sed 's/^/     /')" >>"$output/$1"
}

# Of what tests that passed have said, only that they were skipped.
rust() {
    cargo test --workspace --no-fail-fast -- --show-output 2>&1 |
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
    cargo build --quiet --workspace --bins || return
    tests/vm/selftest.sh --jobs 2 || status=1
    tests/vm/run.sh --quick --jobs 2 || status=1
    return "$status"
}

tests/summary/run.sh 2>&1 | tee "$output/summary" || broke summary
rust | tee "$output/cargo" || broke cargo
awk -f scripts/unfinished.awk "$output/cargo" >"$output/unfinished"
[ ! -s "$output/unfinished" ] || status=1
make --no-print-directory -C libonbeat test-all OUT="$libonbeat" 2>&1 | tee "$output/libonbeat" || broke libonbeat
make --no-print-directory -C libonbeat/examples/player test OUT="$libonbeat" 2>&1 | tee "$output/player" || broke player
TARGET_DIR=${CARGO_TARGET_DIR:-target} tests/packages/run.sh --quick 2>&1 | tee "$output/packages" || broke packages
in_the_virtual_machine 2>&1 | tee "$output/vm" || broke vm

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
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
