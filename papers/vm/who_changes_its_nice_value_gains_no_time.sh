# A program that changes its nice value all the time gives its CPU to who comes first, as any hog.
# needs: onbeat onbeat-lab periodic.c restless.c
# long: yes
# As a server's kernel: who is in a system call goes on to its end. From 7.0 on there is no such mode: the call ends where it is preempted, and the
# program has nothing to gain.
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
preempt=/sys/kernel/debug/sched/preempt
mode=none
grep -q "$mode" $preempt || mode=lazy
echo $mode >$preempt
check "the kernel preempts as it was told" "$(sed 's/.*(\(.*\)).*/\1/' $preempt)" = $mode
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))

for name in linux24 best berate reserve grace; do
    rm -f /tmp/jobs
    cat >/tmp/chosen <<CHOSEN
restless &
restless=\$!
periodic 40000 $((4 * rounds_in_1ms)) 4 /tmp/jobs 0
kill \$restless
CHOSEN
    onbeat-lab scheduler start "$name" --quiet -- sh -u /tmp/chosen 2>/tmp/messages
    check "$name had nothing to say" ! -s /tmp/messages
    check "$name: there were a hundred jobs" "$(wc -l </tmp/jobs)" -ge 95
    # onbeat itself, an ordinary task, takes 11 ms at times. A scheduler has to learn first that the program sleeps.
    late=$(awk 'NR > 10 && ($3 < 0 || $3 - $1 > 25000) { late++ } END { print late + 0 }' /tmp/jobs)
    check "$name: no job of 4 ms took longer than 25 ms" "$late" = 0
done
