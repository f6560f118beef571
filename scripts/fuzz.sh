#!/usr/bin/env bash
# Runs every fuzz target for the given number of seconds (60 if none is given), one on each CPU; with a
# second number, until it has had so many inputs, if that comes first. Says how many it had.
#
# Sanitizers and coverage are behind rustc's unstable flags: with a stable toolchain alone,
# RUSTC_BOOTSTRAP opens them. In CI every run draws the same inputs, so that a change is judged by
# what it changed; runs by hand find new ones.
#
# With a number of inputs these have at most 400 bytes, some lines, and the fuzzer does not trace
# comparisons: it has up to four times as many in a second. Long inputs are for runs bounded by time.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}
runs=${2:--1}

if cargo +nightly --version >/dev/null 2>&1; then
    toolchain=(+nightly)
else
    toolchain=()
    export RUSTC_BOOTSTRAP=1
fi

targets=$(cargo "${toolchain[@]}" fuzz list)
if [ -z "$targets" ]; then
    echo "no fuzz target found" >&2
    exit 1
fi
export build='--sanitizer none' lengths=''
[ "$runs" = -1 ] || build+=' --no-trace-compares' lengths=-max_len=400
# Both are lists of options.
# shellcheck disable=SC2086
cargo "${toolchain[@]}" fuzz build $build

# What a target says is shown only if it has found a fault; xargs goes on with the others.
fuzz() { # TARGET SECONDS RUNS [TOOLCHAIN]
    local log status=0
    log=$(mktemp)
    # shellcheck disable=SC2086
    cargo ${4:+"$4"} fuzz run $build "$1" -- \
        -max_total_time="$2" -runs="$3" $lengths ${CI:+-seed=1} -timeout=60 -rss_limit_mb=4096 >"$log" 2>&1 || status=1
    if [ "$status" -eq 0 ]; then
        echo "fuzz $1: no fault, $(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) .*/\1 inputs in \2 s/p' "$log")"
    else
        tail -n 60 "$log"
        echo "fuzz $1: a fault; the input that caused it is named above" >&2
    fi
    rm "$log"
    return "$status"
}
export -f fuzz
xargs -P "$(nproc)" -I {} bash -c "fuzz {} $seconds $runs ${toolchain[*]}" <<<"$targets"
