# Jobs without budget under GRACE-OS, four on the one CPU and one on the other: those that wait for their turn there hold up none here.
# needs: onbeat-lab periodic.c taskset
# long: yes
# cpus: 2
# time: virtual
#
# Fewer than a hundred jobs, so that there are no budgets yet. The four and a hog have 4 ms at a time, so that their last turns are longer
# ago than that of the one.
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
taskset -c 0 periodic hog &
hogs=$!
# They sleep until the scheduler is there: who never does comes to no plan.
plans=
for _ in 1 2 3 4; do
    once_there /tmp/begin taskset -c 0 periodic 900000 $((800 * rounds_in_1ms)) 60 /dev/null &
    hogs="$hogs $!"
    plans="$plans --plan $!=900ms"
done
once_there /tmp/begin_alone taskset -c 1 periodic 17000 $rounds_in_1ms 1 /results/alone &
alone=$!
onbeat-lab scheduler start grace --json $plans --plan "$alone=17ms" >/results/told.jsonl 2>/results/messages &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
: >/tmp/begin
sleep 3
: >/tmp/begin_alone
wait "$alone"
kill -INT "$onbeat"
wait "$onbeat"
end_hogs

slow=$(awk '$3 < 0 || $3 - $1 > 6000 { slow++ } END { print slow + 0 }' /results/alone)
echo "$slow of $(wc -l </results/alone) jobs of 1 ms took more than 6 ms, alone on their CPU"
check "there are jobs" "$(wc -l </results/alone)" -gt 50
check "they do not wait for those on the other CPU" "$slow" -le 3
