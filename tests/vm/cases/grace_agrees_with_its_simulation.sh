# Jobs under GRACE-OS, by the kernel under the scheduler `grace` and by `onbeat sim`: the same response times, job for job.
# needs: onbeat cycles.c
# cpufreq: 1000 500
# long: yes
#
# Both run the rules of schedulers/grace/policy.h, and plan by the same lines of `decide`. The program says where its jobs end, and sleeps
# for 1 ms in the middle of each. The first hundred and some jobs, before the plan, are left out: by the kernel it is in force some
# forty jobs later, as the loader looks for programs each 500 ms and at jobs each 100 ms. Tolerance: 9 of 10 jobs within 1.5 ms: the program looks at its speed each 0.5 ms, and
# the hundred jobs of the profiles are not the same.
from=160
jobs=330

middle() {
    sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
onbeat scheduler start grace --json --set target_percent=60 >/results/told.jsonl 2>/results/plan &
scheduler=$!
wait_until "grace is in force" 60 in_force grace
start_hogs 1
cycles 16 2000 $jobs /results/jobs 8000 says
end_hogs
kill -INT "$scheduler"
wait "$scheduler"
cat /results/plan
check "a plan was made of what the program said" "$(grep -c 'of work every 16 ms' /results/plan)" -ge 1

# At the highest speed, before the plan: what a job takes beside its work.
beside=$(awk '$1 < 50 { print $5 - $7 }' /results/jobs | middle)
awk -v beside="$beside" 'BEGIN { print "demand_ns" } { print ($7 + beside) * 1000 }' /results/jobs >/results/demands.csv
cat >/results/tasks.toml <<TOML
duration = "$((jobs * 16 + 100))ms"
policy = "grace"
machine = { speeds_mhz = [500, 1000] }
grace = { update_every = 100 }
[[task]]
name = "cycles"
arrival = { periodic = "16ms" }
demand = { recorded = { file = "demands.csv" } }
bursts = 2
pause = "1ms"
[[task]]
name = "hog"
arrival = "always"
demand = "endless"
TOML
onbeat sim -q --jobs /results/simulated.csv /results/tasks.toml >/results/table
cat /results/table
# The response times of each job (us), by the kernel and here.
awk -F '[ ,]' 'FNR == NR { if ($1 == "cycles") here[count++] = int(($5 - $3) / 1000); next }
    $1 >= from && $1 in here { print $4 - $2, here[$1] }' from="$from" /results/simulated.csv /results/jobs >/results/responses
compared=$(wc -l </results/responses)
apart=$(awk '{ apart = $1 - $2; if (apart < 0) apart = -apart; print apart }' /results/responses | sort -n | awk '{ all[NR] = $1 } END { print all[int(NR * 9 / 10)] }')
kernel=$(awk '{ sum += $1 } END { print int(sum / NR) }' /results/responses)
here=$(awk '{ sum += $2 } END { print int(sum / NR) }' /results/responses)
echo "$compared jobs: $kernel us by the kernel and $here here in the mean; 9 of 10 are $apart us apart at most; $beside us beside the work"
check "there are jobs to compare" "$compared" -gt 150
check "9 of 10 jobs respond within 1.5 ms of the same time" "$apart" -le 1500
check "the mean is the same within 0.5 ms" "$((kernel > here ? kernel - here : here - kernel))" -le 500
late=$(awk '$1 > 16000' /results/responses | wc -l)
simulated=$(awk '$2 > 16000' /results/responses | wc -l)
check "as many are late, within 5 percent: $late by the kernel and $simulated here" \
    "$((late > simulated ? late - simulated : simulated - late))" -le $((compared / 20))
