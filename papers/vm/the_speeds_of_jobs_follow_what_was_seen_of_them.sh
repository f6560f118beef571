# GRACE-OS as a scheduler of the kernel that makes its plans of what it sees: after a hundred jobs they begin slowly and speed up
# where few come to; by wakeups, and by the paper's calls, where a job sleeps in its middle, too.
# needs: onbeat-lab cycles.c
# cpufreq: 1000 500
# long: yes
#
# As in a_job_speeds_up_where_grace_planned_it, but nobody says what jobs demand. They take 2 ms and up to 8 ms more, the
# rarer the more, every 16 ms. The kernel's trace tells when the frequency changed.
trace=/sys/kernel/tracing

# profiled NAME [says]: 430 jobs under grace, beside a hog, and the trace of each change of frequency.
profiled() {
    folder=/results/$1 says=${2-}
    mkdir -p "$folder"
    once_there "$folder/begin" cycles 16 2000 430 "$folder/jobs" 8000 $says &
    task=$!
    : >"$folder/plan"
    plan=
    [ "$says" = says ] || plan="--plan $task=16ms"
    onbeat-lab scheduler start grace --json --set target_percent=60 $plan >"$folder/told.jsonl" 2>"$folder/plan" &
    onbeat=$!
    wait_until "grace is in force" 60 in_force grace
    echo >$trace/trace
    echo 1 >$trace/tracing_on
    start_hogs 1
    : >"$folder/begin"
    wait_until "a plan is made" 60 grep -q 'of work every 16 ms' "$folder/plan"
    wait "$task"
    end_hogs
    echo 0 >$trace/tracing_on
    kill -INT $onbeat
    wait $onbeat
    cat "$folder/plan"
    awk '/cpu_frequency/ {
        for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) at = $i + 0
        match($0, /state=[0-9]+/)
        printf "khz %.6f %s\n", at, substr($0, RSTART + 6, RLENGTH - 6)
    }' $trace/trace | that_last >"$folder/trace"
}

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
echo 1 >$trace/events/power/cpu_frequency/enable
echo mono >$trace/trace_clock
echo 0 >$trace/tracing_on
profiled wakeups
profiled calls says

for way in wakeups calls; do
    folder=/results/$way
    # Of each job that began after the plan: its demand (us), and how long after its begin the frequency rose to the highest (us; -1:
    # it did not).
    awk 'FNR == NR && !planned && $3 == 500000 { planned = $2 * 1e6 }
        FNR == NR { if ($3 == 1000000) rose[rises++] = $2 * 1e6; next }
        $8 / 1e3 > planned {
            begin = $8 / 1e3; end = begin + $4 - $3; after = -1
            for (n = 0; n < rises; n++) if (rose[n] > begin && rose[n] < end) { after = rose[n] - begin; break }
            printf "%d %d\n", $7, after
        }' "$folder/trace" "$folder/jobs" >"$folder/rises"
    # Work in us at the highest speed: where plans have a job speed up, the least and the most of all plans.
    points=$(sed -n 's/.*1000 MHz after \([0-9.]*\) ms.*/\1/p' "$folder/plan" | sort -n)
    least=$(echo "$points" | awk 'NR == 1 { print int($1 * 1000) }')
    most=$(echo "$points" | awk '{ last = $1 } END { print int(last * 1000) + 1 }')
    early=$(awk -v least="$least" '$1 < least - 200 && $2 >= 0' "$folder/rises" | wc -l)
    jobs=$(wc -l <"$folder/rises")
    short=$(awk -v least="$least" '$1 < least - 200' "$folder/rises" | wc -l)
    long=$(awk -v most="$most" '$1 > most + 2200' "$folder/rises" | wc -l)
    slow=$(awk -v most="$most" '$1 > most + 2200 && $2 < 0' "$folder/rises" | wc -l)
    soonest=$(awk '$2 >= 0 { print $2 }' "$folder/rises" | sort -n | head -n 1)
    latest=$(awk '$2 >= 0 { print $2 }' "$folder/rises" | sort -n | tail -n 1)
    echo "$way: plans speed up after $least to $most us; of $jobs jobs $short are shorter, of which $early rose; $long are longer, of which $slow did not; from $soonest to $latest us after their begin"
    check "$way: they begin slowly" "${least:-0}" -ge 2000
    check "$way: there are short jobs" "$short" -gt 50
    check "$way: none of them reached the fast speed" "$early" = 0
    check "$way: there are long jobs" "$long" -gt 5
    check "$way: all of them did" "$slow" = 0
    # At half the speed, so twice the time.
    check "$way: none before the schedule's point" "$soonest" -ge $((least * 2 - 400))
    # The governor may follow a tick later, and who says where its jobs end sleeps in their middle.
    check "$way: and none long after it" "$latest" -le $((most * 2 + 1000 + 4500))
done
