# Whenever a chosen program becomes ready, an ordinary one takes the CPU that it would have had: it runs on the other one, which is idle.
# needs: onbeat onbeat-lab periodic.c taskset
# long: yes
# cpus: 2
# time: virtual
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))

for name in linux24 best berate grace reserve; do
    rm -f /tmp/jobs
    # In turns on this CPU and on that one, each time on the one where the chosen one ran last.
    taskset -c 0 periodic 80000 $((20 * rounds_in_1ms)) 5 /tmp/even 0 &
    taskset -c 1 periodic 80000 $((20 * rounds_in_1ms)) 5 /tmp/odd 40000 &
    onbeat-lab scheduler start "$name" --quiet -- periodic 40000 $((4 * rounds_in_1ms)) 4 /tmp/jobs 0 2>/tmp/messages
    wait
    check "$name had nothing to say" ! -s /tmp/messages
    check "$name: there were a hundred jobs" "$(wc -l </tmp/jobs)" -ge 95
    check "$name: the ordinary ones were under way" "$(awk '$3 - $1 > 15000' /tmp/even /tmp/odd | wc -l)" -ge 80
    late=$(awk '$3 < 0 || $3 - $1 > 15000 { late++ } END { print late + 0 }' /tmp/jobs)
    check "$name: at most one job of ten took longer than 15 ms" "$late" -le 10
done
