# A reserved thread that may run on one CPU alone: its next budget calls that CPU, where a hog is, and not one that is idle.
# needs: onbeat-lab periodic.c taskset
# long: yes
# cpus: 2
# time: virtual
#
# Jobs of 3 ms on 2 ms in every 19 ms: each ends 1 ms after the second budget is there. A hog's slice is 4 ms; neither period is a
# multiple of the tick.
periodic 40000 1000 1 /tmp/speed
rounds=$((3000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
taskset -c 1 periodic hog &
hogs=$!
taskset -c 1 sh -c "until [ -e /tmp/begin ]; do usleep 20000; done; exec periodic 41000 $rounds 4 /results/jobs" &
program=$!
onbeat-lab scheduler start reserve --quiet --group "$program=2ms/19ms" 2>/tmp/messages &
onbeat=$!
wait_until "the scheduler is in force" 60 in_force reserve
: >/tmp/begin
wait "$program"
stops reserve $onbeat /tmp/messages
end_hogs

awk '$3 >= 0 { print $3 - $1 }' /results/jobs >/results/responses
echo "$(wc -l </results/responses) jobs took $(sort -n /results/responses | head -n 1) to $(greatest </results/responses) us, $(within 90 </results/responses) at most in 9 of 10 cases"
check "there are jobs" "$(wc -l </results/responses)" -gt 80
check "they need two budgets" "$(within 10 </results/responses)" -gt 18000
check "9 of 10 go on as soon as the second is there" "$(within 90 </results/responses)" -le 21000
