# The loop through sched_ext: onbeat finds the rhythm of a program that it knows nothing of, and reserves for it in its own scheduler.
# needs: onbeat periodic.c
# long: yes
#
# The kernel's default beside it, and what a killed onbeat leaves: nothing.
period=20000

# late LOG FROM_S: how many per mille of the jobs after the first seconds ended after the next release, or never began.
late() {
    awk -v period="$period" -v from="$2" '$1 >= from * 1e6 { jobs++ }
        $1 >= from * 1e6 && ($3 < 0 || $3 - $1 > period) { late++ }
        END { print jobs ? int(late * 1000 / jobs) : 1000 }' "$1"
}

scheduler() {
    cat /sys/kernel/sched_ext/root/ops 2>/dev/null || echo none
}

start_hogs 6
periodic $period 2000 2 /results/default
onbeat run --always --config 'enforcement.through="scx"' --report /results/report.json --log /results/log.jsonl -- \
    periodic $period 2000 6 /results/scx
check "by default more than half of the jobs are late" "$(late /results/default 0)" -gt 500
check "the loop has reserved" -n "$(grep -m 1 '"what":"reserved"' /results/log.jsonl)"
check "through sched_ext at most 1% are, once the rhythm is found: $(late /results/scx 4) per mille" \
    "$(late /results/scx 4)" -le 10
check "the kernel's own scheduler is back" "$(scheduler)" = none

periodic $period 2000 600 /results/never &
program=$!
onbeat attach --always --quiet --config 'enforcement.through="scx"' --log /results/killed.jsonl "$program" &
onbeat=$!
has_reserved() {
    grep -q '"what":"reserved"' /results/killed.jsonl
}
wait_until "it reserves for a running program, too" 60 has_reserved
check "in the scheduler, and not by the thread's policy" "$(policy_of "$program")" = 0
kill -9 $onbeat
wait $onbeat || true
no_scheduler() {
    [ "$(scheduler)" = none ]
}
wait_until "a killed onbeat leaves the kernel's own scheduler" 60 no_scheduler
kill "$program"
end_hogs
