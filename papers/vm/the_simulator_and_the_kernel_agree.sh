# The same three tasks under SCHED_FIFO and SCHED_DEADLINE, by the kernel and by `onbeat-lab sim`: the same response times.
# needs: onbeat-lab rt-app
#
# Tolerance: the mean and the longest response time of each task are within 2% of its period or 0.3 ms, whichever
# is more. What a job demands is measured with each task alone; when its jobs were released is read from rt-app's log.
# Name, period, demand, runtime and first release: no two deadlines ever fall together, or microseconds would decide.
tasks="a:10000:2000:2300:0 b:25000:6000:6800:3000 c:40000:14000:15500:7000"
seconds=3

calibrate_rt_app

# task_set POLICY [NAME]: rt-app's tasks, all or one of them.
task_set() {
    separator= priority=60
    for task in $tasks; do
        IFS=: read -r name period run runtime delay <<TASK
$task
TASK
        more="\"policy\": \"SCHED_FIFO\", \"priority\": $priority"
        [ "$1" = fifo ] || more=$(rt_app_deadline "$runtime" "$period")
        priority=$((priority - 10))
        case "${2-$name}" in "$name") ;; *) continue ;; esac
        printf '%s' "$separator"
        rt_app_task "$name" "$period" "$run" "$more, \"delay\": $delay"
        separator=", "
    done
}

# log_of FOLDER NAME
log_of() {
    echo "$1"/log-"$2"-*.log
}

# first_release LOG: of the first job after half a second (us, on the guest's clock). rt-app notes when it was back from
# the timer, and how long after the release that was.
first_release() {
    awk '!/^#/ { if (!start) start = $5; if ($5 - start >= 5e5) { print $6 - $11; exit } }' "$1"
}

for task in $tasks; do
    name=${task%%:*}
    rt_app_plan "/results/alone-$name" 1 "$(task_set fifo "$name")"
    rt-app "/results/alone-$name/plan.json" >/dev/null 2>&1
done

for policy in fifo deadline; do
    folder=/results/$policy
    rt_app_plan "$folder" "$seconds" "$(task_set "$policy")"
    rt-app "$folder/plan.json" >/dev/null 2>&1
    echo "duration = \"$((seconds - 1))s\"" >"$folder/tasks.toml"
    priority=60 base=
    for task in $tasks; do
        IFS=: read -r name period run runtime delay <<TASK
$task
TASK
        release=$(first_release "$(log_of "$folder" "$name")")
        : "${base:=$release}"
        # Beats later than the first one of the first task, or with it.
        phase=$(awk -v release="$release" -v base="$base" -v period="$period" \
            'BEGIN { ahead = release - base; while (ahead < 0) ahead += period; print int(ahead % period) }')
        demand=$(awk '!/^#/ { print $3 }' "$(log_of "/results/alone-$name" "$name")" | middle)
        class="{ fifo = $priority }"
        [ "$policy" = fifo ] || class="{ deadline = { runtime = \"${runtime}us\", period = \"${period}us\" } }"
        priority=$((priority - 10))
        cat >>"$folder/tasks.toml" <<TOML
[[task]]
name = "$name"
arrival = { periodic = "${period}us" }
phase = "${phase}us"
demand = { constant = "${demand}us" }
scheduling = $class
TOML
    done
    onbeat-lab sim -q --jobs "$folder/jobs.csv" "$folder/tasks.toml" >"$folder/table"
    cat "$folder/tasks.toml" "$folder/table"
    for task in $tasks; do
        IFS=: read -r name period run runtime delay <<TASK
$task
TASK
        kernel="$folder/$name.kernel" simulated="$folder/$name.simulated"
        responses "$(log_of "$folder" "$name")" "$period" 0.5 >"$kernel"
        awk -F , -v name="$name" '$1 == name { print int(($5 - $3) / 1000) }' "$folder/jobs.csv" >"$simulated"
        check "there are jobs of $name to compare" "$(wc -l <"$kernel")" -gt 20
        tolerance=$((period / 50 > 300 ? period / 50 : 300))
        for what in mean greatest; do
            k=$($what <"$kernel")
            s=$($what <"$simulated")
            apart=$((k > s ? k - s : s - k))
            check "$policy, $name, $what: $k us by the kernel and $s us here are $tolerance us apart at most" \
                "$apart" -le "$tolerance"
        done
    done
done
# The third task is preempted by the second under fixed priorities, where its deadline is the earlier one.
check "the two policies are told apart" \
    "$(greatest </results/fifo/c.kernel)" -gt "$(($(greatest </results/deadline/c.kernel) + 2000))"
