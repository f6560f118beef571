# GRACE-OS as a scheduler of the kernel: a job begins slowly, speeds up where its schedule says, and one that ends early never does.
# needs: onbeat-lab cycles.c
# cpufreq: 1000 500
# long: yes
#
# Two frequencies, and schedutil, which in the emulated machine adds half to what is asked (target_percent): it does what a scheduler asks of it. The emulated speed never changes; cycles works as much
# longer as the frequency is lower, and the kernel's trace tells when it changed.
trace=/sys/kernel/tracing

# scheduled FOLDER WORK_US: jobs of so much work, 16 ms apart, under a plan for jobs of 2 ms, and more the rarer, up to
# 10 ms; the trace of each onset, end and change of frequency.
scheduled() {
    mkdir -p "$1"
    cycles 16 "$2" 1500 "$1/jobs" &
    task=$!
    onbeat-lab scheduler start grace --json --set target_percent=60 --plan "$task=16ms:/tmp/demands" >"$1/told.jsonl" 2>"$1/plan" &
    onbeat=$!
    wait_until "grace is in force" 60 in_force grace
    # Not before: the program would come late while the scheduler loads, and who never sleeps comes to no plan.
    start_hogs 1
    sleep 0.5
    echo >$trace/trace
    echo 1 >$trace/tracing_on
    sleep 2
    echo 0 >$trace/tracing_on
    kill -INT $onbeat
    wait $onbeat
    end_hogs
    check "the task ran under grace" -d "/proc/$task"
    kill "$task"
    wait "$task" || true
    # Onsets and ends of jobs by the task's wakeups and sleeps: "begin S", "end S", "khz S KHZ".
    awk -v pid="$task" '
        { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) at = $i + 0 }
        /sched_waking/ && $0 ~ " pid=" pid " " { printf "begin %.6f\n", at }
        /sched_switch/ && $0 ~ " prev_pid=" pid " .*prev_state=S" { printf "end %.6f\n", at }
        /cpu_frequency/ { match($0, /state=[0-9]+/); printf "khz %.6f %s\n", at, substr($0, RSTART + 6, RLENGTH - 6) }
    ' $trace/trace | that_last >"$1/trace"
}

# rises FILE: for each job, how long after its onset the frequency rose to the highest (us); nothing for a job that ended
# before that.
rises() {
    awk '$1 == "begin" { began = $2 } $1 == "end" { began = 0 }
        $1 == "khz" && $3 == 1000000 && began { printf "%d\n", ($2 - began) * 1e6 }' "$1"
}

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
awk 'BEGIN { print "demand_ns"; for (n = 0; n <= 100; n++) printf "%d\n", 2000000 + n * n * n * 8 }' >/tmp/demands
for event in sched/sched_waking sched/sched_switch power/cpu_frequency; do
    echo 1 >$trace/events/$event/enable
done
echo 0 >$trace/tracing_on

scheduled /results/short 3500
scheduled /results/long 7500
cat /results/long/plan
jobs=$(grep -c begin /results/long/trace)
rose=$(rises /results/long/trace | wc -l)
earliest=$(rises /results/long/trace | sort -n | head -n 1)
latest=$(rises /results/long/trace | sort -n | tail -n 1)
echo "of $jobs long jobs $rose rose, from $earliest to $latest us after their onset"
check "there are short jobs" "$(grep -c begin /results/short/trace)" -gt 50
check "none of them reached the fast speed" -z "$(rises /results/short/trace)"
check "nearly all long jobs did" "$rose" -ge $((jobs - 2))
# The schedule: half the speed up to the point, so twice the time. A tick may pass until the governor follows.
point=$(sed -n 's/.*1000 MHz after \([0-9]*\)[0-9.]* ms$/\1/p' /results/long/plan)
check "the plan begins slowly" "${point:-0}" -ge 3
check "none rose before the schedule's point" "$earliest" -ge $((point * 2000))
check "and none long after it" "$latest" -le $(((point + 1) * 2000 + 4500))
