# A reservation of a whole process: three threads on 30% of the CPU are in time beside hogs, and get no more if they want more.
# needs: onbeat-lab crew.c
# long: yes
#
# Through the scheduler `reserve`, which SCHED_DEADLINE cannot do: that has a budget for each thread.
period=20000

# late LOG: how many of the jobs ended after the next release.
late() {
    awk -v period="$period" '$3 - $2 > period { late++ } END { print late + 0 }' "$1"
}

# used LOG: the CPU time of all threads (us).
used() {
    awk '{ used += $4 } END { print used }' "$1"
}

reserve() {
    onbeat-lab reserve --runtime 6ms --period 20ms -- "$@"
}

start_hogs 10
crew 3 $period 600 50 /results/default
reserve crew 3 $period 600 50 /results/reserved
demand=$(($(used /results/reserved) / 50))
echo "the three threads need $demand us in every $period us"
check "by default most of the 150 jobs are late" "$(late /results/default)" -gt 75
check "with 6 ms for all three none is" "$(late /results/reserved)" = 0
check "which is nearly all of their budget" "$demand" -gt 5000
check "the kernel's own scheduler is back" "$(cat /sys/kernel/sched_ext/state)" = disabled

# In 1 s there are 50 periods; the first and the last may be cut. What the process starts is in its group, too.
reserve sh -c 'crew 1 hog 1 /results/one & crew 2 hog 1 /results/two; wait'
greedy=$(($(used /results/one) + $(used /results/two)))
echo "three hogs in two processes with 6 ms in every 20 ms used $greedy us in 1 s"
check "they got their 30%" "$greedy" -ge 288000
check "and no more" "$greedy" -le 312000

refusal=$(onbeat-lab reserve --runtime 19500us --period 20ms -- true 2>&1 || true)
echo "$refusal"
check "what does not fit is refused, and what is free is said" "${refusal#*no room for 97.5%: 9}" != "$refusal"

onbeat-lab reserve --runtime 6ms --period 20ms -- crew 3 hog 600 /results/orphaned &
onbeat=$!
is_reserving() {
    in_force reserve && pidof crew >/dev/null
}
wait_until "the program runs under the scheduler" 60 is_reserving
kill -9 $onbeat
wait $onbeat || true
wait_until "the kernel has its own scheduler back when onbeat is killed" 60 in_force none
program=$(pidof crew)
check "the program lives on as an ordinary one" "$(policy_of "$program")" = 0
kill "$program"
end_hogs
