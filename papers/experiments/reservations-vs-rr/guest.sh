# AQuoSA's experiment 1: 10 ms and 400 ms tasks at 25% each, under SCHED_RR at one priority, then reserved, then under onbeat.
# needs: onbeat rt-app
# seconds: 3600
#
# RUN_SECONDS: for how long each way; HOGS: CPU hogs beside all of them.
tasks() { # MORE-OF-THE-SHORT MORE-OF-THE-LONG
    echo "$(rt_app_task short 10000 2500 "$1"), $(rt_app_task long 400000 100000 "$2")"
}

calibrate_rt_app
start_hogs "${HOGS:-4}"

round_robin='"policy": "SCHED_RR", "priority": 10'
rt_app_plan /results/rr "${RUN_SECONDS:-20}" "$(tasks "$round_robin" "$round_robin")"
rt-app /results/rr/plan.json >/dev/null

# As the paper's --qos: what each needs, and a little, in its own period.
rt_app_plan /results/reserved "${RUN_SECONDS:-20}" "$(tasks "$(rt_app_deadline 2750 10000)" "$(rt_app_deadline 110000 400000)")"
rt-app /results/reserved/plan.json >/dev/null

rt_app_plan /results/onbeat "${RUN_SECONDS:-20}" "$(tasks '' '')"
onbeat run --always --report /results/onbeat/report.json --log /results/onbeat/log.jsonl -- rt-app /results/onbeat/plan.json
end_hogs
