# Jobs under GRACE-OS, by the kernel under the scheduler `grace` and by `onbeat-lab sim`: the same response times, job for job.
# needs: onbeat-lab cycles.c
# cpufreq: 1000 500
# long: yes
#
# Both run the rules of schedulers/grace/policy.h, and plan by the same lines of `decide`. The program says where its jobs end, and sleeps
# for 1 ms in the middle of each; it begins at three places between the clock's ticks. Jobs are compared from the first one that the
# kernel begins slowly: the plan is in force then, some forty jobs later than here, as the loader looks for programs each 500 ms and at
# jobs each 100 ms. They are as many as surely come before the kernel's next plan. Here that is the same, for any hundred jobs in a row
# have the same demands; in the kernel it is made of jobs whose speed changed in the middle of what they do between two looks at it.
# One percent more than they demand may move a point by a group of the histogram, 0.54 ms: the demands are such that one percent more
# or less than in the first plan, as by what the kernel takes of a job's time, does not.
# Tolerance: 9 of 10 jobs within 0.25 ms; the others meet the shell's and the loader's turns.
jobs=270
compared=90

load_cpufreq
echo schedutil >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
for shift_us in 0 1300 2700; do
    folder=/results/$shift_us
    mkdir "$folder"
    onbeat-lab scheduler start grace --json --set target_percent=60 >"$folder/told.jsonl" 2>"$folder/plan" &
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
    onbeat-lab sim -q --jobs "$folder/simulated.csv" "$folder/tasks.toml" >"$folder/table"
    cat "$folder/table"
    from=$(awk '$6 == 500000 { print $1 + 1; exit }' "$folder/jobs")
    check "the plan is in force after a hundred jobs" "${from:-0}" -gt 100
    # The response times of each job (us), by the kernel and here, and how far apart they are.
    awk -F '[ ,]' 'FNR == NR { if ($1 == "cycles") here[count++] = int(($5 - $3) / 1000); next }
        $1 >= from && $1 < from + compared && $1 in here { own = $4 - $2; apart = own - here[$1]; print own, here[$1], apart < 0 ? -apart : apart }
        ' from="$from" compared="$compared" "$folder/simulated.csv" "$folder/jobs" >"$folder/responses"
    apart=$(awk '{ print $3 }' "$folder/responses" | within 90)
    echo "$compared jobs from $from on, $shift_us us later: 9 of 10 are $apart us apart at most, all $(awk '{ print $3 }' "$folder/responses" | greatest); $beside us beside the work"
    check "there are jobs to compare" "$(wc -l <"$folder/responses")" = "$compared"
    check "9 of 10 jobs respond within 0.25 ms of the same time" "$apart" -le 250
    agree "the mean response time in us" "$(awk '{ print $1 }' "$folder/responses" | mean)" "$(awk '{ print $2 }' "$folder/responses" | mean)" 100
    agree "jobs that are late" "$(awk '$1 > 16000' "$folder/responses" | wc -l)" "$(awk '$2 > 16000' "$folder/responses" | wc -l)" $((compared / 20))
done
