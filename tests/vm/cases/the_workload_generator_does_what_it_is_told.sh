# The soft real-time program of papers/experiments/workloads: demands by seed, as often late as its log says, and the cheaters.
# needs: srtgen.c

# columns LOG AWK-PROGRAM: over the log without its heading.
columns() {
    tail -n +2 "$1" | awk -F , "$2"
}

check "the same seed gives the same demands" "$(srtgen print=500 seed=7 | md5sum)" = "$(srtgen print=500 seed=7 | md5sum)"
check "another seed gives others" "$(srtgen print=500 seed=7 | md5sum)" != "$(srtgen print=500 seed=8 | md5sum)"
share=$(srtgen print=5000 share=600 | awk '{ sum += $1 } END { print int(sum / NR / 40000) }')
check "jobs need the share that was asked for: $share permille" "$share" -ge 590 -a "$share" -le 610

srtgen seconds=2 mdn=1 share=500 log=/results/alone.csv
check "alone it has a job each period" "$(columns /results/alone.csv 'END { print NR }')" = 49
check "alone it misses none" "$(columns /results/alone.csv '{ n += $7 + $8 } END { print n }')" = 0
apart=$(columns /results/alone.csv '{ n += $6; m += $5 } END { d = n - m; print int(1000 * (d < 0 ? -d : d) / m) }')
check "a job takes the CPU time that it says, $apart permille apart" "$apart" -le 30

start_hogs 2
srtgen seconds=3 mdn=1 share=600 log=/results/heard.csv
check "beside hogs it misses some" "$(columns /results/heard.csv '{ n += $7 } END { print n }')" -gt 5
check "and notifies each of them" "$(columns /results/heard.csv '$7 != $8' | wc -l)" = 0
check "after one that is late the next begins at once" \
    "$(columns /results/heard.csv 'late && $2 != ended { n++ } { late = $7; ended = $4 } END { print n + 0 }')" = 0
end_hogs

srtgen seconds=2 change_s=1 share_then=1000 cry_then=1000 log=/results/cheater.csv
check "a cheater is honest at first" "$(columns /results/cheater.csv 'NR < 24 { n += $8 } END { print n }')" = 0
check "and cries a thousand times a second then" "$(columns /results/cheater.csv 'NR > 26 && $8 != 40' | wc -l)" = 0
