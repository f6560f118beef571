#!/usr/bin/env bash
# Runs every fuzz target for the given number of seconds (60 if none is given).
#
# Sanitizers and coverage are behind rustc's unstable flags: with a stable toolchain alone,
# RUSTC_BOOTSTRAP opens them. In CI every run draws the same inputs, so that a change is judged by
# what it changed; runs by hand find new ones.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}

if cargo +nightly --version >/dev/null 2>&1; then
    cargo=(cargo +nightly)
else
    cargo=(cargo)
    export RUSTC_BOOTSTRAP=1
fi

mapfile -t targets < <("${cargo[@]}" fuzz list)
if [ ${#targets[@]} -eq 0 ]; then
    echo "no fuzz target found" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for target in "${targets[@]}"; do
    echo "== fuzz $target: $seconds s"
    if ! "${cargo[@]}" fuzz run --sanitizer none "$target" -- \
        -max_total_time="$seconds" ${CI:+-seed=1} -timeout=60 -rss_limit_mb=4096 >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "fuzz $target: a fault; the input that caused it is named above" >&2
        exit 1
    fi
    echo "fuzz $target: no fault in $seconds s"
done
