# The three rt-apps of LFS++'s Table I beside four CPU hogs: the kernel's default, then onbeat, which is told nothing.
# needs: onbeat rt-app
#
# One CPU here, so the loads are two thirds of the paper's (20, 19 and 14%): with a margin of a quarter
# they must fit under onbeat's cap of 85%. papers/experiments/three-rt-apps is the whole experiment.
tasks="$(rt_app_task a 3505 700), $(rt_app_task b 8220 1560), $(rt_app_task c 100000 14000)"

calibrate_rt_app
start_hogs 4
rt_app_plan /results/default 2 "$tasks"
rt-app /results/default/plan.json >/dev/null 2>&1
rt_app_plan /results/onbeat 5 "$tasks"
onbeat run --always --report /results/report.json --log /results/log.jsonl -- rt-app /results/onbeat/plan.json >/dev/null
end_hogs

by_default=$(late /results/default/log-a-0.log 3505 0)
echo "task a by default: $by_default per mille late"
check "by default the shortest period's task is late more often than not" "$by_default" -gt 500
# From the third second on: onbeat has found the periods by then.
for task in a-0:3505 b-1:8220 c-2:100000; do
    late=$(late "/results/onbeat/log-${task%:*}.log" "${task#*:}" 3)
    check "under onbeat at most 1% of the jobs of task ${task%-*} are late: $late per mille" "$late" -le 10
    # The log has all jobs, onbeat those since it has found the period.
    told=$(sed 's/{"tid"/\n&/g' /results/report.json |
        sed -n "s/.*\"comm\":\"${task%-*}\".*\"missed\":\([0-9]*\),\"counted_from_ns.*/\1/p")
    logged=$(awk '$8 < 0' "/results/onbeat/log-${task%:*}.log" | wc -l)
    check "onbeat tells no miss of ${task%-*} that its log has not: $told of $logged" "$told" -le "$logged"
done
