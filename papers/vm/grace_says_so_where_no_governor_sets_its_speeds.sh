# GRACE-OS beside a governor that does not do what a scheduler asks for: it says what to do, and asks for nothing; at its start, and when
# the governor is changed under it.
# needs: onbeat-lab cycles.c
# long: yes
# cpufreq: 1000 500
governor=/sys/devices/system/cpu/cpufreq/policy0/scaling_governor

# started FOLDER: with one job each 16 ms.
started() {
    mkdir -p "$1"
    cycles 16 1500 1500 /tmp/jobs &
    task=$!
    onbeat-lab scheduler start grace --json --set target_percent=60 --plan "$task=16ms:/tmp/demands" >"$1/told.jsonl" 2>"$1/said" &
    onbeat=$!
    wait_until "grace is in force" 60 in_force grace
    start_hogs 1
    sleep 2
}

ended() {
    end_hogs
    kill -INT "$onbeat"
    wait "$onbeat"
    kill "$task"
    wait "$task" || true
    cat "$1/said"
}

load_cpufreq
awk 'BEGIN { print "demand_ns"; for (n = 0; n <= 100; n++) printf "%d\n", 1500000 + n * n * n }' >/tmp/demands
echo performance >$governor
started /results/deaf
ended /results/deaf
check "the governor is named, and what to do" "$(grep -c 'governor performance.*echo schedutil >.*policy0' /results/deaf/said)" = 1
check "budgets are planned" "$(grep -c 'of work every 16 ms$' /results/deaf/said)" = 1
check "no speed was asked for" "$(tail -n 1 /results/deaf/told.jsonl | sed 's/.*"speed_changes":\([0-9]*\).*/\1/')" = 0

echo schedutil >$governor
started /results/changed
check "speeds are planned" "$(grep -c 'of work every 16 ms; 500 MHz' /results/changed/said)" = 1
check "nothing is amiss" "$(grep -c governor /results/changed/said)" = 0
echo performance >$governor
sleep 4
ended /results/changed
check "the change is told, once" "$(grep -c 'from now on: the governor performance.*echo schedutil' /results/changed/said)" = 1
