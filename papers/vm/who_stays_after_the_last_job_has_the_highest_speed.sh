# Under GRACE-OS others run at the speed that the last job left, as in section 4.4 of the paper; when nobody has a plan any more, at the
# highest, and not at that for good.
# needs: onbeat-lab cycles.c
# long: yes
# cpufreq: 1000 500
speed=/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq

runs_at() {
    [ "$(cat $speed)" = "$1" ]
}

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
awk 'BEGIN { print "demand_ns"; for (n = 0; n <= 100; n++) printf "%d\n", 1500000 + n * n * n }' >/tmp/demands
cycles 16 1500 1500 /results/jobs &
task=$!
onbeat-lab scheduler start grace --json --set target_percent=60 --plan "$task=16ms:/tmp/demands" >/results/told.jsonl 2>/results/plan &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
start_hogs 1
wait_until "the jobs have the CPU run slowly" 10 runs_at 500000
sleep 0.5
check "the hog, too" "$(cat $speed)" = 500000
kill "$task"
wait "$task" || true
wait_until "with the last plan the slowness has gone" 10 runs_at 1000000
end_hogs
kill -INT "$onbeat"
wait "$onbeat"
cat /results/plan
