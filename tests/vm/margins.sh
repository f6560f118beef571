#!/usr/bin/env bash
# Sums up what cases have checked on several images: of each comparison of numbers the least and the greatest that came, and
# how much of the bound the worst one took. 100% is all of it; what comes near it, another build will break.
#
# usage: tests/vm/margins.sh RESULTS [CASE...]    # the folder that run.sh --results has filled; without a case, all in it
set -euo pipefail
results=$1
shift

logs=("$results"/*/serial.log)
if [ $# -gt 0 ]; then
    logs=()
    for name; do
        for log in "$results/$name"/serial.log "$results/$name"-image-*/serial.log; do
            [ ! -e "$log" ] || logs+=("$log")
        done
    done
fi
for log in "${logs[@]}"; do
    name=$(basename "$(dirname "$log")")
    sed -n "s/^\(ok\|NOT SO\): \(.*\) \[\(-\?[0-9]*\) \(-[lg][te]\) \(-\?[0-9]*\)\]$/${name%-image-*}\t\2\t\3\t\4\t\5/p" "$log"
done | awk -F '\t' '
    {
        what = $2
        gsub(/[0-9]+/, "#", what)
        key = $1 ": " what "\t" $4
        # Of what has to be small, its part of the bound; of what has to be large, the part of it that the bound is.
        taken = $4 ~ /l/ ? ($5 ? $3 / $5 : ($3 > 0 ? 9 : 0)) : ($3 > 0 ? $5 / $3 : 9)
        if (!(key in count) || taken > worst[key]) {
            worst[key] = taken
            bound[key] = $5
        }
        if (!(key in count) || $3 < least[key]) {
            least[key] = $3
        }
        if (!(key in count) || $3 > most[key]) {
            most[key] = $3
        }
        count[key]++
    }
    END {
        for (key in count) {
            split(key, part, "\t")
            printf "%4.0f%%  %d to %d %s %d  (%d times)  %s\n", 100 * worst[key], least[key], most[key], part[2], bound[key],
                count[key], part[1]
        }
    }' | sort -rn
