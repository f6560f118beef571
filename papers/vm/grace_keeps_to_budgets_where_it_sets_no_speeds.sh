# GRACE-OS for chosen programs: budgets, and no word about speeds (set_budget without set_dvspnt). A job within its budget is
# in time beside a hog; one beyond it waits for what is left of the hog's turn; and the governor is not asked for anything.
# needs: onbeat onbeat-lab cycles.c
# cpufreq: 1000 500
# long: yes
#
# The governor is schedutil, which would slow the jobs down if the scheduler asked for less.
load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
cat >/tmp/both.sh <<'BOTH'
while :; do :; done &
hog=$!
cycles 16 2000 700 /results/jobs 8000 says
kill $hog
BOTH
onbeat-lab scheduler start grace --json -- sh /tmp/both.sh >/results/told.jsonl 2>/results/messages
cat /results/messages
counted=$(sed -n 's/.*"speed_changes":\([0-9]*\).*/\1/p' /results/told.jsonl | tail -n 1)
exhaustions=$(sed -n 's/.*"exhaustions":\([0-9]*\).*/\1/p' /results/told.jsonl | tail -n 1)
budget=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/messages | awk '{ last = int($1 * 1000) } END { print last }')
check "it says that it plans no speeds" "$(grep -c 'budgets alone' /results/messages)" = 1
check "there is a plan" "${budget:-0}" -gt 5000
check "it has no speeds" "$(grep -c 'of work every.*MHz' /results/messages)" = 0
check "no speed was asked for" "$counted" = 0
check "every job began at the highest" "$(awk '$6 != 1000000' /results/jobs | wc -l)" = 0
# What jobs take beside their work and the 1 ms of sleep that is in each (us), once the plan is in force: those that stay 0.5 ms
# below the budget, and those that go 0.2 ms beyond it.
awk -v budget="$budget" '$1 >= 200 && $7 < budget - 500 { print $4 - $2 - $7 }' /results/jobs >/results/within
awk -v budget="$budget" '$1 >= 200 && $7 > budget + 200 { print $4 - $2 - $7 }' /results/jobs >/results/beyond
most=$(within 90 </results/within)
mean=$(awk '{ sum += $1 } END { printf "%d", sum / NR }' /results/beyond)
sort -n /results/beyond | tr '\n' ' '
echo "$(wc -l </results/within) jobs within $budget us take $most us more than their work, 9 of 10 of them; $(wc -l </results/beyond) beyond it $mean"
check "there are jobs within the budget" "$(wc -l </results/within)" -gt 70
# The loader is an ordinary task, and goes before all that it schedules.
check "they do not wait for the hog" "$most" -lt 2000
check "there are jobs beyond it" "$(wc -l </results/beyond)" -ge 15
# A turn is 4 ms, of which a half is left on average.
check "these do, for a quarter of a turn and more" "$mean" -gt $((most + 1000))
check "they have used up their budgets" "${exhaustions:-0}" -ge "$(wc -l </results/beyond)"
