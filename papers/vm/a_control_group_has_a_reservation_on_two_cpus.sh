# A reservation of a control group on two CPUs: what is started in it lives on one budget, wherever it runs; the rest is left alone.
# needs: onbeat-lab crew.c
# cpus: 2
# time: virtual
# long: yes
group=/sys/fs/cgroup/reserved

# used LOG: the CPU time of all threads (us).
used() {
    awk '{ used += $4 } END { print used }' "$1"
}

mkdir -p $group
onbeat-lab scheduler start reserve --json --interval 100ms --group $group=30ms/100ms >/results/told.jsonl &
onbeat=$!
wait_until "the scheduler is in force" 120 in_force reserve
# Two processes in the group, each with two threads that want all they can get; and two that are not in it.
sh -c "echo \$\$ >$group/cgroup.procs; crew 2 hog 2 /results/first & crew 2 hog 2 /results/second & wait" &
inside=$!
crew 2 hog 2 /results/outside
wait $inside
kill -INT $onbeat
wait $onbeat
all=$(($(used /results/first) + $(used /results/second)))
outside=$(used /results/outside)
echo "the group used $all us in 2 s on two CPUs, the others $outside us"
check "the four threads in the group got their 30% of a CPU" "$all" -ge 540000
check "and no more" "$all" -le 660000
check "the two outside had the rest" "$outside" -gt 2000000
check "what the group has used was told" -n "$(grep -m 1 '"exhausted":[1-9]' /results/told.jsonl)"
check "the kernel's own scheduler is back" "$(cat /sys/kernel/sched_ext/state)" = disabled

# A budget of more than one CPU, which takes both to use it up.
onbeat-lab reserve --runtime 150ms --period 100ms -- crew 3 hog 2 /results/wide &
onbeat=$!
crew 2 hog 2 /results/beside
wait $onbeat
wide=$(used /results/wide)
echo "three threads with 150 ms in every 100 ms used $wide us in 2 s, the others $(used /results/beside) us"
check "they got their one and a half CPUs" "$wide" -ge 2850000
check "and no more" "$wide" -le 3150000
refusal=$(onbeat-lab reserve --runtime 250ms --period 100ms -- true 2>&1 || true)
echo "$refusal"
check "what two CPUs cannot give is refused" "${refusal#*no room for 250}" != "$refusal"
