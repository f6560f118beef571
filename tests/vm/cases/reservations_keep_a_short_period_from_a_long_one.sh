# AQuoSA's experiment 1, short: 10 ms and 400 ms tasks at 25% each, under SCHED_RR at one priority, then under onbeat.
# needs: onbeat rt-app
#
# The paper saw the 10 ms task end up to 75 ms after its activation under SCHED_RR, and both tasks within
# their periods under reservations. onbeat is told neither period nor runtime; a hog runs beside it.
# papers/experiments/reservations-vs-rr is the whole experiment.
tasks() { # MORE-OF-BOTH
    echo "$(rt_app_task short 10000 2500 "$1"), $(rt_app_task long 400000 100000 "$1")"
}

calibrate_rt_app
start_hogs 1
rt_app_plan /results/rr 2 "$(tasks '"policy": "SCHED_RR", "priority": 10')"
rt-app /results/rr/plan.json >/dev/null 2>&1
rt_app_plan /results/onbeat 5 "$(tasks '')"
onbeat run --always --report /results/report.json --log /results/log.jsonl -- rt-app /results/onbeat/plan.json >/dev/null
end_hogs

rr=$(longest /results/rr/log-short-0.log 10000 0)
short=$(longest /results/onbeat/log-short-0.log 10000 3)
long=$(longest /results/onbeat/log-long-1.log 400000 3)
echo "10 ms task: SCHED_RR at most $rr us (paper: 75470), onbeat $short us (paper, reserved: 4480)"
echo "400 ms task: onbeat $long us (paper, reserved: 126346)"
check "under SCHED_RR the short task waits for the long one, past its period" "$rr" -gt 10000
check "under onbeat the short task ends within its period" "$short" -le 10000
check "under onbeat the long task ends within its period" "$long" -le 400000
