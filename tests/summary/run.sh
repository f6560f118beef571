#!/usr/bin/env bash
# Tests what scripts/test.sh repeats of tests that failed (said.txt is an output, expected.txt what is worth repeating), and that it
# notices what never told a result.
set -euo pipefail
cd "$(dirname "$0")"

differs=$(mktemp)
trap 'rm "$differs"' EXIT
failed=0

check() { # NAME EXPECTED SAID [SCRIPT]
    if diff "$2" <(awk -f "../../scripts/${4-failed}.awk" "$3") >"$differs"; then
        echo "test summary::$1 ... ok"
    else
        failed=1
        echo "test summary::$1 ... FAILED"
        sed 's/^/     /' "$differs"
    fi
}

check what_a_failed_test_said_is_repeated expected.txt said.txt
check a_test_binary_that_ends_before_its_tests_has_failed <(
    echo 'test a test binary ended before its tests (tests/live.rs) ... FAILED'
) <(
    printf '     Running tests/live.rs (target/debug/deps/live-1)\n\nrunning 2 tests\ntest one ... ok\n'
    printf '     Running tests/other.rs (target/debug/deps/other-1)\n\nrunning 1 test\ntest two ... ok\n\ntest result: ok. 1 passed\n'
) unfinished
exit "$failed"
