#!/usr/bin/env bash
# What a call of mdn() costs: unheard, heard by a call, heard by a breakpoint. Needs root and the release binary.
set -euo pipefail
cd "$(dirname "$0")/../.."
onbeat=${ONBEAT:-${CARGO_TARGET_DIR:-target}/release/onbeat}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for way in optimised plain; do
    extra=''
    [ "$way" = optimised ] || extra=-DONBEAT_PROBE_NOP=nop
    bench=$folder/$way
    cc -O2 -D_GNU_SOURCE ${extra:+"$extra"} -Ilibonbeat/include -o "$bench" libonbeat/bench/marks.c
    "$bench"
    "$onbeat" record -q -o "$folder/recording.gz" -- "$bench" wait
done
