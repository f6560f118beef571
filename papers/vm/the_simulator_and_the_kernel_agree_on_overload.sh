# A task that overruns its reservation, and more work than there is time for under SCHED_FIFO: by the kernel and by
# `onbeat-lab sim`.
# needs: onbeat-lab rt-app
#
# Tolerance: the mean and the longest response time of each task are within 3%, or 0.3 ms, of what they are for jobs as measured, 1%
# shorter or 2% longer, as by what the kernel takes of a job's time. Budgets are enforced at the kernel's tick of 4 ms, and where one has
# some microseconds left at a tick, a job goes on for a tick or waits for its next period, and which it is no simulation can tell. So the
# periods of the task that overruns are no multiple of the tick: its jobs meet sixteen phases of it, and such a moment comes in one or two of
# them, where otherwise it would come in all jobs or none; and when it is preempted it has more than half a millisecond left. A task that falls ever further behind, which feels each moment that the
# kernel itself takes, has done as many jobs in the end, or one more or less. What a job that is told to run so long really takes is
# measured with a task alone. The simulation counts from a multiple of the kernel's tick. The first jobs are left out.
# Name, period, usual and fifth demand, runtime and first release (us). Alone on the CPU when it begins, each begins at once.
overrun="a:10125:2000:2000:2300:0 b:20250:3000:14000:6000:5100"
overload="a:10000:3000:3000:0:20000 b:25000:10000:10000:0:24500 c:40000:14000:14000:0:0"
seconds=2
tick_us=4000
first_jobs=5
# How long the simulation's jobs are.
percents="99 102 100"

calibrate_rt_app
rt_app_plan /results/alone 1 "$(rt_app_task alone 20000 3000 '"policy": "SCHED_FIFO", "priority": 60')"
rt-app /results/alone/plan.json >/dev/null 2>&1

# fields TASK: into name, period, usual, fifth, runtime and delay.
fields() {
    IFS=: read -r name period usual fifth runtime delay <<TASK
$1
TASK
}

# task_set POLICY TASK...: rt-app's tasks; each fifth job is of another phase.
task_set() {
    policy=$1 separator= priority=60
    shift
    for task; do
        fields "$task"
        class="\"policy\": \"SCHED_FIFO\", \"priority\": $priority"
        [ "$policy" = fifo ] || class=$(rt_app_deadline "$runtime" "$period")
        priority=$((priority - 10))
        timer="\"timer\": { \"ref\": \"unique\", \"period\": $period, \"mode\": \"absolute\" }"
        printf '%s"%s": { "loop": -1, %s, "delay": %s, "phases": {
            "usual": { "loop": 4, "run": %s, %s }, "fifth": { "loop": 1, "run": %s, %s } } }' \
            "$separator" "$name" "$class" "$delay" "$usual" "$timer" "$fifth" "$timer"
        separator=", "
    done
}

# rows FOLDER NAME: what rt-app noted of each job; field 9 is the demand that it was told.
rows() {
    awk '!/^#/' "$1"/log-"$2"-*.log
}

# run_both NAME POLICY TASK...: by the kernel and by the simulator, into /results/NAME.
run_both() {
    folder=/results/$1 policy=$2
    shift 2
    rt_app_plan "$folder" "$seconds" "$(task_set "$policy" "$@")"
    rt-app "$folder/plan.json" >/dev/null 2>&1

    base=$(for task; do fields "$task"; rows "$folder" "$name" | awk 'NR == 1 { print $5 }'; done | sort -n | head -n 1)
    base=$((base / tick_us * tick_us))
    {
        echo "duration = \"$((seconds * 3))s\""
        echo "[machine]"
        echo "tick = \"${tick_us}us\""
    } >"$folder/tasks.toml"
    priority=60
    for task; do
        fields "$task"
        phase=$(($(rows "$folder" "$name" | awk 'NR == 1 { print $5 }') - base))
        class="{ fifo = $priority }"
        [ "$policy" = fifo ] || class="{ deadline = { runtime = \"${runtime}us\", period = \"${period}us\" } }"
        priority=$((priority - 10))
        cat >>"$folder/tasks.toml" <<TOML
[[task]]
name = "$name"
arrival = { periodic = "${period}us" }
phase = "${phase}us"
demand = { recorded = { file = "$name.csv" } }
scheduling = $class
TOML
    done
    for percent in $percents; do
        for task; do
            fields "$task"
            {
                echo demand_ns
                rows "$folder" "$name" | awk -v takes="$(rows /results/alone alone | awk '{ print $3 }' | middle)" \
                    -v percent="$percent" '{ print int($9 * takes / 3 * percent / 100) }'
            } >"$folder/$name.csv"
        done
        onbeat-lab sim -q --jobs "$folder/jobs-$percent.csv" "$folder/tasks.toml" >"$folder/table"
    done
    cat "$folder/tasks.toml" "$folder/table"
}

# simulated PERCENT: the response times of the jobs of the task that `fields` names, as many as the kernel had done in its time.
simulated() {
    awk -F , -v name="$name" '$1 == name { print int(($5 - $3) / 1000) }' "$folder/jobs-$1.csv" |
        tail -n "+$first_jobs" | head -n "$(wc -l <"$folder/$name.kernel")" >"$folder/$name.$1"
    cat "$folder/$name.$1"
}

# apart NUMBER NUMBERS: how far it is from between the least and the most of these.
apart() {
    least=$(echo "$2" | sort -n | head -n 1)
    most=$(echo "$2" | sort -n | tail -n 1)
    apart=$(($1 < least ? least - $1 : $1 > most ? $1 - most : 0))
}

# compare NAME TASK...: response times.
compare() {
    folder=/results/$1
    shift
    for task; do
        fields "$task"
        rows "$folder" "$name" | awk '{ print $10 - $8 }' | tail -n "+$first_jobs" >"$folder/$name.kernel"
        check "there are jobs of $name to compare" "$(simulated 100 | wc -l)" -gt 20
        for what in mean greatest; do
            k=$($what <"$folder/$name.kernel")
            tolerance=$((k * 3 / 100 > 300 ? k * 3 / 100 : 300))
            apart "$k" "$(for percent in $percents; do simulated "$percent" | $what; done)"
            check "$name, $what: $k us by the kernel are $tolerance us at most from the $least to $most here" \
                "$apart" -le "$tolerance"
        done
    done
}

run_both overrun deadline $overrun
compare overrun $overrun
check "the overrunning task is throttled" "$(greatest </results/overrun/b.kernel)" -gt 20000
check "the other one does not feel it" "$(greatest </results/overrun/a.kernel)" -lt 10000

run_both overload fifo $overload
compare overload ${overload% *}
check "the middle one does not feel the overload" "$(greatest </results/overload/b.kernel)" -lt 25000
check "the last one is behind by the end" "$(rows /results/overload c | awk '{ print $10 - $8 }' | greatest)" -gt 80000
kernel=$(rows /results/overload c | wc -l)
ended=$(($(rows /results/overload c | tail -n 1 | awk '{ print $6 }') - base))
apart "$kernel" "$(for percent in $percents; do
    awk -F , -v ended="$ended" '$1 == "c" && $5 <= ended * 1000' "/results/overload/jobs-$percent.csv" | wc -l
done)"
check "the last one has done $kernel jobs by the kernel, and $least to $most here" "$apart" -le 1
