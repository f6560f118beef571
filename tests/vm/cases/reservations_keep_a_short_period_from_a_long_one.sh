# AQuoSA's experiment 1: 10 ms and 400 ms tasks at 25% each, under SCHED_RR at one priority, then reserved, then under onbeat.
# needs: onbeat rt-app chrt
# seconds: 300
#
# The paper saw the 10 ms task end up to 75 ms after its activation under SCHED_RR, and both tasks within
# their periods under reservations. onbeat is told neither period nor runtime; four hogs run beside it.
write_plan() { # NAME POLICY PRIORITY CALIBRATION SECONDS
    cat >"/tmp/$1.json" <<JSON
{ "global": { "duration": $5, "calibration": $4, "lock_pages": false,
              "logdir": "/results", "log_basename": "$1", "gnuplot": false },
  "tasks": {
    "short": { "policy": "$2", "priority": $3, "loop": -1, "run": 2500,
               "timer": { "ref": "unique", "period": 10000, "mode": "absolute" } },
    "long": { "policy": "$2", "priority": $3, "loop": -1, "run": 100000,
              "timer": { "ref": "unique", "period": 400000, "mode": "absolute" } } } }
JSON
}

# The longest time from activation to end, in us, of the jobs after the third second: period less slack.
longest() { # LOG PERIOD_US
    awk -v period="$2" '!/^#/ { if (!start) start = $5; if ($5 - start < 3000000) next
                                if (period - $8 > longest) longest = period - $8 }
                        END { printf "%d\n", longest }' "$1"
}

write_plan calibrate SCHED_OTHER 0 '"CPU0"' 1
speed=$(rt-app /tmp/calibrate.json 2>&1 | sed -n 's/.*pLoad = \([0-9]*\)ns.*/\1/p' | head -n 1)
check "rt-app has measured the loop's speed" -n "$speed"

write_plan rr SCHED_RR 10 "$speed" 8
rt-app /tmp/rr.json >/dev/null 2>&1

for i in 1 2 3 4; do
    while :; do :; done &
done
hogs=$(jobs -p)
write_plan onbeat SCHED_OTHER 0 "$speed" 12
onbeat run --report /results/report.json --log /results/log.jsonl -- rt-app /tmp/onbeat.json >/dev/null
kill $hogs

rr=$(longest /results/rr-short-0.log 10000)
short=$(longest /results/onbeat-short-0.log 10000)
long=$(longest /results/onbeat-long-1.log 400000)
echo "10 ms task: SCHED_RR at most $rr us (paper: 75470), onbeat $short us (paper, reserved: 4480)"
echo "400 ms task: onbeat $long us (paper, reserved: 126346)"
check "under SCHED_RR the short task waits for the long one, past its period" "$rr" -gt 10000
check "under onbeat the short task ends within its period" "$short" -le 10000
check "under onbeat the long task ends within its period" "$long" -le 400000
