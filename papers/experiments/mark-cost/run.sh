#!/usr/bin/env bash
# What a mark costs, unheard and heard, beside getppid() and another prctl(): a table of the least and the most of four
# runs, and the ratios that are wanted. Needs half a minute, root and the release binary.
set -euo pipefail
cd "$(dirname "$0")/../../.."
onbeat=${ONBEAT:-${CARGO_TARGET_DIR:-target}/release/onbeat}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

bench=$folder/marks
cc -O2 -D_GNU_SOURCE -Ilibonbeat/include -o "$bench" libonbeat/bench/marks.c
for _ in 1 2 3 4; do
    "$bench" "nobody listens" && "$bench" "nobody listens, with a filter" filter
    "$onbeat" record -q -o "$folder/other.gz" -- sleep 4 &
    sleep 2
    "$bench" "another program is heard"
    wait
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
        mark = least["a mark, nobody listens"]; other = "another prctl(), "
        printf "\nunheard: %.2f getppid() (wanted 1.7); heard: %.2f unheard (1.5); ", mark / least["getppid(), nobody listens"], least["a mark, heard"] / mark
        printf "another prctl(): %.2f (1)\n", least[other "another program is heard"] / least[other "nobody listens"]
    }' "$folder/runs"
