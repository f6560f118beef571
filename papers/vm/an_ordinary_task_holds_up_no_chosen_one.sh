# An ordinary task that interrupts a chosen hog takes its own time, and no more: a chosen program that became ready meanwhile comes
# before the hog.
# needs: onbeat onbeat-lab periodic.c
# long: yes
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
cat >/tmp/chosen <<CHOSEN
. /lib.sh
start_hogs 1
periodic 40000 $((4 * rounds_in_1ms)) 4 /tmp/jobs 0
policy_of \$hogs >/tmp/policy
end_hogs 2>/dev/null
CHOSEN

for name in linux24 best berate; do
    rm -f /tmp/jobs /tmp/ordinary /tmp/policy
    # It begins 1 ms before each job of the chosen one, and ends 1 ms after that is ready.
    periodic 40000 $((2 * rounds_in_1ms)) 4 /tmp/ordinary 39000 &
    ordinary=$!
    onbeat-lab scheduler start "$name" --quiet -- sh -eu /tmp/chosen
    wait "$ordinary"
    check "$name: the programs were chosen" "$(cat /tmp/policy)" = 7
    check "$name: the ordinary task was under way when they were released" \
        "$(awk '$3 - $1 > 1200 && $3 >= 0 { met++ } END { print met }' /tmp/ordinary)" -gt 90
    check "$name: there were a hundred jobs" "$(wc -l </tmp/jobs)" -ge 95
    # onbeat itself, an ordinary task too, takes 11 ms at times. A scheduler has to learn first that the program sleeps.
    late=$(awk 'NR > 10 && ($3 < 0 || $3 - $1 > 25000) { late++ } END { print late + 0 }' /tmp/jobs)
    check "$name: no job of 4 ms took longer than 25 ms" "$late" = 0
done
