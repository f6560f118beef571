# GRACE-OS as a scheduler of the kernel beside a governor that follows late: what a job demands counts at the speed that its CPU had, not
# at the one that was asked for.
# needs: onbeat-lab cycles.c
# cpufreq: 1000 500
# long: yes
#
# As in the_speeds_of_jobs_follow_what_was_seen_of_them, but schedutil waits for 10 ms after each change before it makes another, as
# jobs last, so that many begin fast that were to begin slowly, and go on slowly where they were to be fast. Any hundred jobs in a row
# have the same demands, and the first hundred run at the highest speed, and alone, so that none meets the next one: each plan is to be
# like the first one.

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
echo 10000 >/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us
cycles 16 2000 1000 /results/jobs 8000 &
task=$!
onbeat-lab scheduler start grace --json --set target_percent=60 --plan "$task=16ms" >/results/told.jsonl 2>/results/plan &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
wait_until "a plan is made" 60 grep -q 'of work every 16 ms' /results/plan
start_hogs 1
wait "$task"
end_hogs
kill -INT $onbeat
wait $onbeat
cat /results/plan

# What jobs took at the speed in force: by the program's own look at it, their work in time at the highest speed.
begun_fast=$(awk '$1 > 200 && $6 == 1000000' /results/jobs | wc -l)
echo "$begun_fast of $(awk '$1 > 200' /results/jobs | wc -l) jobs began fast"
check "the governor was late for many jobs" "$begun_fast" -gt 100
sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/plan | awk '{ print int($1 * 1000) }' >/results/budgets
check "plans were made of jobs whose speed changed" "$(wc -l </results/budgets)" -ge 3
first=$(head -n 1 /results/budgets)
check "the least budget is like the first" "$(sort -n /results/budgets | head -n 1)" -ge $((first - 300))
check "and so is the greatest" "$(greatest </results/budgets)" -le $((first + 300))
