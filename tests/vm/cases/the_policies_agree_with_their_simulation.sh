# A decoder of 45% beside a hog under each policy of schedulers/, by the kernel and by `onbeat sim`: the same figures.
# needs: onbeat srtgen.c
# long: yes
#
# Both run the same rules (schedulers/NAME/policy.h) over the same frames, with notifications and without. Tolerance: the
# missed deadlines are within 8 percent of the jobs, the shares of the CPU within 5 percent of it, the median response
# times within 3 ms. On the kernel a quantum ends at the first tick (4 ms) after it is used up, onbeat and the
# shell take some time, too, and where jobs begin between the clock's ticks is not the same.
seconds=20

# percent OF ALL
percent() {
    echo "$1 $2" | awk '{ printf "%d", 100 * $1 / ($2 > 0 ? $2 : 1) + 0.5 }'
}

# middle: of the numbers on standard input.
middle() {
    sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

# agree WHAT KERNEL SIMULATED TOLERANCE
agree() {
    apart=$(($2 > $3 ? $2 - $3 : $3 - $2))
    check "$1: $2 by the kernel and $3 here" "$apart" -le "$4"
}

for policy in linux24 best berate; do
    for mdn in 0 1; do
        folder=/results/$policy-$mdn
        mkdir "$folder"
        cat >"$folder/run.sh" <<RUN
srtgen share=1000 period_us=10000 seconds=$seconds log=$folder/hog.csv &
srtgen period_us=40000 share=450 seed=16 mdn=$mdn seconds=$seconds log=$folder/srt.csv &
wait
RUN
        onbeat scheduler start "$policy" --quiet --set "mdn=$mdn" -- sh "$folder/run.sh"
        cat >"$folder/tasks.toml" <<TOML
duration = "${seconds}s"
policy = "$policy"
machine = { tick = "4ms" }
[[task]]
name = "srt"
arrival = { paced = "40ms" }
phase = "13ms"
demand = { decoder = { mean = "18ms", seed = 16 } }
mdn = $([ "$mdn" = 1 ] && echo true || echo false)
[[task]]
name = "hog"
arrival = "always"
demand = "endless"
TOML
        onbeat sim -q --jobs "$folder/jobs.csv" "$folder/tasks.toml" >"$folder/table"
        cat "$folder/table"
        way="$policy, mdn=$mdn"
        # shellcheck disable=SC2046 # two words each
        agree "$way, missed deadlines in percent" \
            "$(percent $(awk -F , 'FNR > 1 { jobs++; late += $7 } END { print late, jobs }' "$folder/srt.csv"))" \
            "$(percent $(awk -F , '$1 == "srt" { jobs++; late += $9 } END { print late + 0, jobs }' "$folder/jobs.csv"))" 8
        agree "$way, the median response time in us" \
            "$(awk -F , 'FNR > 1 { print int(($4 - $2) / 1000) }' "$folder/srt.csv" | middle)" \
            "$(awk -F , '$1 == "srt" { print int(($5 - $3) / 1000) }' "$folder/jobs.csv" | middle)" 3000
        for task in srt hog; do
            agree "$way, the CPU time of $task in percent" \
                "$(percent $(awk -F , 'FNR == 2 { begin = $2 } { used += $6; end = $4 } END { print used, end - begin }' "$folder/$task.csv"))" \
                "$(sed -n "s/^$task .* \([0-9]*\)\.[0-9]*% .*/\1/p" "$folder/table")" 5
        done
    done
done
