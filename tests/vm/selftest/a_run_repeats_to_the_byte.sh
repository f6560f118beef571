# Everything that is told of a run under onbeat, beside a hog: it has to be the same in the next run.
# needs: onbeat rt-app
calibrate_rt_app
start_hogs 1
rt_app_plan /results/rt-app 2 "$(rt_app_task a 3505 700), $(rt_app_task b 8220 1560)"
onbeat run --always --report /results/report.json --log /results/log.jsonl -- rt-app /results/rt-app/plan.json
end_hogs
