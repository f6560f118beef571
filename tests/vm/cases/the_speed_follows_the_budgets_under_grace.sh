# power.rule = "grace": the lowest frequency at which the statistical budget fits, though a hog wants everything; put back.
# needs: onbeat cycles.c
# cpufreq: 1000 800 700 600 500 300
# long: yes
load_cpufreq
policy=/sys/devices/system/cpu/cpufreq/policy0
echo userspace >"$policy/scaling_governor"
echo 700000 >"$policy/scaling_setspeed"

# 8 ms in 40 at 1000 MHz: 27 ms, and so 67% of the CPU, at 300 MHz; 300 and 200 MHz with a fifth for others.
keep() { # FOLDER OPTION...
    folder=$1
    shift
    mkdir "$folder"
    onbeat run --always --quiet --config 'power.rule="grace"' --config 'power.sampling="500ms"' --report "$folder/report.json" --log "$folder/log.jsonl" "$@" -- \
        cycles 40 8000 160 "$folder/jobs"
}

# speed_at_the_end FOLDER: that of the last 20 jobs, in kHz; 0 if they had more than one.
speed_at_the_end() {
    tail -n 20 "$1/jobs" | awk '{ khz[$6]; last = $6 } END { for (k in khz) n++; print n == 1 ? last : 0 }'
}

# late FOLDER: how many of the last 20 jobs ended after the release of the next.
late_at_the_end() {
    tail -n 20 "$1/jobs" | awk '$4 - $2 > 40000 { late++ } END { print late + 0 }'
}

start_hogs 1
keep /results/alone
keep /results/shared --config 'power.best-effort="20%"'
end_hogs
check "the frequency is the lowest at which the budget fits" "$(speed_at_the_end /results/alone)" = 300000
check "with a share for best effort, at which that fits, too" "$(speed_at_the_end /results/shared)" = 500000
check "every job has time enough there" "$(late_at_the_end /results/alone)" = 0
check "and there" "$(late_at_the_end /results/shared)" = 0
check "the budget was raised before" "$(grep -c 'slow down from [0-9]* MHz to 300 MHz' /results/alone/log.jsonl)" -gt 0
check "the frequency is as before" "$(cat "$policy/scaling_setspeed")" = 700000
check "no energy is told where nothing counts it" "$(grep -c '"energy_uj": *null' /results/alone/report.json)" = 1
