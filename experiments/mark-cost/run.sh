#!/usr/bin/env bash
# What a mark costs, unheard and heard, beside getppid() and another prctl(): a table of the least and the most of four
# runs. Needs root and the release binary.
set -euo pipefail
cd "$(dirname "$0")/../.."
onbeat=${ONBEAT:-${CARGO_TARGET_DIR:-target}/release/onbeat}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

bench=$folder/marks
cc -O2 -D_GNU_SOURCE -Ilibonbeat/include -o "$bench" libonbeat/bench/marks.c
for _ in 1 2 3 4; do
    "$bench" "nobody listens"
    "$bench" "nobody listens, with a filter" filter
    "$onbeat" record -q -o "$folder/other.gz" -- sleep 1000 &
    listener=$!
    sleep 1
    "$bench" "another program is heard"
    kill -INT "$listener"
    wait "$listener" || true
    "$onbeat" record -q -o "$folder/recording.gz" -- "$bench" "heard"
    "$onbeat" record -q -o "$folder/recording.gz" -- "$bench" "heard, with a filter" filter
done >"$folder/runs"
awk -F ': ' '
    { ns = $2 + 0 }
    !($1 in least) { order[++kinds] = $1; least[$1] = most[$1] = ns }
    ns < least[$1] { least[$1] = ns }
    ns > most[$1] { most[$1] = ns }
    END {
        print "| what | ns a call |\n|---|---:|"
        for (i = 1; i <= kinds; i++)
            printf "| %s | %.1f to %.1f |\n", order[i], least[order[i]], most[order[i]]
    }' "$folder/runs"
