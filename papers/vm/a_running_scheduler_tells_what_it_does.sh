# A running scheduler tells what it does, status tells of it, and Ctrl-C ends it.
# needs: onbeat-lab srtgen.c
none="no scheduler is loaded: the kernel's own is in force"

# wakeups: how many the table tells of, all in all.
wakeups() {
    awk '$1 ~ /^[0-9.]*s$/ { sum += $2 } END { print sum + 0 }' /results/table
}

check "all five are listed" "$(onbeat-lab scheduler list --json | grep -c '"name"')" = 5
check "none is in force" "$(onbeat-lab scheduler status)" = "$none"
onbeat-lab scheduler start berate --interval 200ms >/results/table 2>/results/messages &
scheduler=$!
wait_until "it is in force" 30 in_force berate
check "status tells of it" "$(onbeat-lab scheduler status)" = "berate schedules all ordinary tasks"
srtgen period_us=40000 share=300 seconds=2 mdn=1 log=/tmp/jobs
told_of_all_jobs() {
    [ "$(wakeups)" -ge 45 ]
}
wait_until "the table has the wakeups of 50 jobs" 10 told_of_all_jobs
kill -INT "$scheduler"
status=0
wait "$scheduler" || status=$?
check "it has stopped as it was told" "$status" = 0
check "it had nothing else to say" ! -s /results/messages
check "a heading names what is counted" "$(head -n 1 /results/table | awk '{ print $1, $2 }')" = "time wakeups"
check "none is in force again" "$(onbeat-lab scheduler status)" = "$none"
