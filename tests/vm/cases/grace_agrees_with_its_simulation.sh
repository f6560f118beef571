# Jobs under GRACE-OS, by the kernel under the scheduler `grace` and by `onbeat sim`: the same response times, job for job.
# needs: onbeat cycles.c
# cpufreq: 1000 500
# long: yes
#
# Both run the rules of schedulers/grace/policy.h, and plan by the same lines of `decide`. The program says where its jobs end, and sleeps
# for 1 ms in the middle of each; it begins at three places between the clock's ticks. The first hundred and some jobs, before the
# plan, are left out: by the kernel it is in force some forty jobs later, as the loader looks for programs each 500 ms and at jobs
# each 100 ms. Any hundred jobs in a row have the same demands, so the plans are the same; and these demands are such that one
# percent more or less, as by what the kernel takes of a job's time, moves no point of the schedule to another group.
# Tolerance: 9 of 10 jobs within 0.25 ms; the others meet the shell's and the loader's turns.
from=160
jobs=270

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
for shift_us in 0 1300 2700; do
    folder=/results/$shift_us
    mkdir "$folder"
    onbeat scheduler start grace --json --set target_percent=60 >"$folder/told.jsonl" 2>"$folder/plan" &
    scheduler=$!
    wait_until "grace is in force" 60 in_force grace
    start_hogs 1
    usleep "$shift_us"
    cycles 16 2030 $jobs "$folder/jobs" 8120 says
    end_hogs
    kill -INT "$scheduler"
    wait "$scheduler"
    cat "$folder/plan"
    check "a plan was made of what the program said" "$(grep -c 'of work every 16 ms' "$folder/plan")" -ge 1

    # At the highest speed, before the plan: what a job takes beside its work.
    beside=$(awk '$1 < 50 { print $5 - $7 }' "$folder/jobs" | middle)
    awk -v beside="$beside" 'BEGIN { print "demand_ns" } { print ($7 + beside) * 1000 }' "$folder/jobs" >"$folder/demands.csv"
    cat >"$folder/tasks.toml" <<TOML
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
    onbeat sim -q --jobs "$folder/simulated.csv" "$folder/tasks.toml" >"$folder/table"
    cat "$folder/table"
    # The response times of each job (us), by the kernel and here, and how far apart they are.
    awk -F '[ ,]' 'FNR == NR { if ($1 == "cycles") here[count++] = int(($5 - $3) / 1000); next }
        $1 >= from && $1 in here { own = $4 - $2; apart = own - here[$1]; print own, here[$1], apart < 0 ? -apart : apart }
        ' from="$from" "$folder/simulated.csv" "$folder/jobs" >"$folder/responses"
    compared=$(wc -l <"$folder/responses")
    apart=$(awk '{ print $3 }' "$folder/responses" | within 90)
    echo "$compared jobs $shift_us us later: 9 of 10 are $apart us apart at most, all $(awk '{ print $3 }' "$folder/responses" | greatest); $beside us beside the work"
    check "there are jobs to compare" "$compared" -ge 100
    check "9 of 10 jobs respond within 0.25 ms of the same time" "$apart" -le 250
    agree "the mean response time in us" "$(awk '{ print $1 }' "$folder/responses" | mean)" "$(awk '{ print $2 }' "$folder/responses" | mean)" 100
    agree "jobs that are late" "$(awk '$1 > 16000' "$folder/responses" | wc -l)" "$(awk '$2 > 16000' "$folder/responses" | wc -l)" $((compared / 20))
done
