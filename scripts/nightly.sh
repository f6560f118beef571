#!/usr/bin/env bash
# The long forms of the service's tests, as root: a million hostile calls, a thousand kills at random moments, an hour
# of programs that come and go, and a hundred million inputs for each fuzz target. Each part is run, whatever the
# others say. It takes a night for all but the inputs, which take another: FUZZ_LONGEST bounds them, in seconds, for each target.
#
# usage: scripts/nightly.sh [PART...]    a part is hostile, killed, soak or fuzz; without one, all
set -euo pipefail
cd "$(dirname "$0")/.."

: "${HOSTILE_CALLS:=1000000}" "${KILLS:=1000}" "${SOAK_MINUTES:=60}" "${FUZZ_RUNS:=100000000}" "${FUZZ_LONGEST:=86400}"
[ $# -gt 0 ] || set -- hostile killed soak fuzz

failed=''
for part; do
    echo "nightly: $part, from $(date +%H:%M:%S)"
    case "$part" in
    hostile) cargo build -p onbeat --examples &&
        ONBEAT_HOSTILE_CALLS=$HOSTILE_CALLS cargo test -p onbeat --test daemon hostile -- --nocapture ;;
    killed) cargo build -p onbeat --examples &&
        ONBEAT_KILLS=$KILLS cargo test -p onbeat --test daemon killed -- --nocapture ;;
    soak) cargo build --release -p onbeat -p onbeat-experiments &&
        "${CARGO_TARGET_DIR:-target}/release/onbeat-experiments" soak --minutes "$SOAK_MINUTES" ;;
    fuzz) scripts/fuzz.sh "$FUZZ_LONGEST" "$FUZZ_RUNS" ;;
    *)
        echo "there is no part $part: there are hostile, killed, soak and fuzz" >&2
        exit 2
        ;;
    esac || failed+=" $part"
done
[ -z "$failed" ] || {
    echo "nightly: failed:$failed" >&2
    exit 1
}
