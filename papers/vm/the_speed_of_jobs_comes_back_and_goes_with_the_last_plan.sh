# Under GRACE-OS others run at the speed that the last job left, as in section 4.4 of the paper. A real-time thread has the highest one
# while it runs, and schedutil takes no other word for a while: the speed of the jobs comes back all the same. When nobody has a plan any
# more, it is the highest for good.
# needs: onbeat-lab cycles.c chrt
# long: yes
# cpufreq: 1000 500
speed=/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq

runs_at() {
    [ "$(cat $speed)" = "$1" ]
}

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
# Longer than the threads run here.
echo 20000 >/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us
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
rose=0 stayed=0
for _ in $(seq 20); do
    during=$(chrt -f 10 cat $speed)
    [ "$during" = 500000 ] || rose=$((rose + 1))
    sleep 0.15
    runs_at 500000 || stayed=$((stayed + 1))
done
check "real-time threads have the highest speed" "$rose" -ge 18
check "and leave it to nobody" "$stayed" = 0
kill "$task"
wait "$task" || true
wait_until "with the last plan the slowness has gone" 10 runs_at 1000000
end_hogs
kill -INT "$onbeat"
wait "$onbeat"
cat /results/plan
