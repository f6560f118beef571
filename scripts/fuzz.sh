#!/usr/bin/env bash
# Runs fuzz targets for the given number of seconds each (60 if none is given), one on each CPU; with a second number,
# until it has had so many inputs, if that comes first (-1: no bound). Says how many it had.
#
# Without targets it runs all. In CI every run draws the same inputs, so that a change is judged by what it changed;
# runs by hand find new ones. With a bound, inputs have at most 400 bytes, and the fuzzer does not trace comparisons: it
# has up to four times as many in a second. Long inputs are for runs bounded by time.
#
# usage: scripts/fuzz.sh [SECONDS [RUNS [TARGET...]]]
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60} runs=${2:--1}
all=$(sed -n 's|.*fuzz_targets/\(.*\)\.rs"$|\1|p' Cargo.toml)
targets=${*:3}
targets=${targets:-$all}

# What libFuzzer needs to see which way an input took. With a target of its own, nothing that runs while this is built
# has it.
flags='--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 -Cdebug-assertions'
for option in level=4 inline-8bit-counters pc-table $([ "$runs" != -1 ] || echo trace-compares); do
    flags+=" -Cllvm-args=-sanitizer-coverage-$option"
done
host=$(rustc -vV | sed -n 's/^host: //p')
features=()
[ $# -le 2 ] || features=(--no-default-features)
# Word splitting is meant: targets hold no spaces.
# shellcheck disable=SC2046,SC2086
RUSTFLAGS=$flags cargo build --release --target "$host" "${features[@]}" $(printf -- '--bin %s ' $targets)
folder=$(realpath "${CARGO_TARGET_DIR:-target}")/$host/release
export folder

# What a target says is shown only if it has found a fault; xargs goes on with the others. Nobody else adds to the
# corpus meanwhile: to look for that took a fifth of the time.
fuzz() { # TARGET SECONDS RUNS
    local log status=0 bounded=()
    log=$(mktemp)
    mkdir -p "corpus/$1" "artifacts/$1"
    [ "$3" = -1 ] || bounded=(-max_len=400)
    "$folder/$1" "corpus/$1" "-artifact_prefix=artifacts/$1/" -max_total_time="$2" -runs="$3" "${bounded[@]}" \
        -reload=0 ${CI:+-seed=1} -timeout=60 -rss_limit_mb=4096 >"$log" 2>&1 || status=1
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
tr ' ' '\n' <<<"$targets" | xargs -P "$(nproc)" -I {} bash -c "fuzz {} $seconds $runs"
