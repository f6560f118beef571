# GRACE-OS on two CPUs: each program's jobs speed up where its own schedule says, on the CPU that they run on; those that end early
# never do, whatever the other CPU does.
# needs: onbeat-lab cycles.c periodic.c taskset
# cpus: 2
# time: virtual
# cpufreq: 1000 500
# long: yes
#
# As in a_job_speeds_up_where_grace_planned_it; two programs with plans of their own, each on its CPU, where a hog is, too. The
# CPUs share one stream of instructions: as the hogs never leave one idle, each has half of it all the time.
trace=/sys/kernel/tracing
policies=/sys/devices/system/cpu/cpufreq

# demands LEAST_US MORE_US: a hundred demands (ns) from the least on, more the rarer.
demands() {
    awk -v least="$1" -v more="$2" 'BEGIN { print "demand_ns"; for (n = 0; n <= 100; n++) printf "%d\n", 1000 * least + more * n * n * n / 1000 }'
}

# jobs_of TASK: from the trace, a line for each job, in us of work at the highest speed by the frequency that its CPU had: what it did; what
# it had done when the scheduler asked for the highest speed for it (-1: never); before it was on a CPU with the low frequency (-1: it never
# was); and until its CPU then became fast (-1: never). Then the CPU on which it ended. What is asked, and set, for who runs next comes a
# moment before the switch to that one. From there on its time counts, by the scheduler's timer, which is started then: an emulated CPU may stand
# still for milliseconds before it comes to the switch, and that is time of the task's in the kernel's account, too.
jobs_of() {
    awk -v pid="$1" -v khz_0="$khz_0" -v khz_1="$khz_1" -v moment=20 '
        function number_after(word) { match($0, word "[0-9]+"); return substr($0, RSTART + length(word), RLENGTH - length(word)) + 0 }
        function advance() {
            if (cpu >= 0) work += (at - since) * khz[cpu] / 1e6
            since = at
        }
        function look() {
            if (cpu < 0) return
            if (wanted[cpu] >= 1024 && asked < 0) asked = work
            if (khz[cpu] < 1000000) { if (low < 0) low = work }
            else if (low >= 0 && rose < 0) { rose = work; rose_at = at }
        }
        BEGIN { cpu = -1; khz[0] = khz_0; khz[1] = khz_1 }
        { for (i = 1; i <= NF; i++) { if ($i ~ /^\[[0-9]+\]$/) here = substr($i, 2) + 0; if ($i ~ /^[0-9]+\.[0-9]+:$/) at = $i * 1e6 } }
        /sched_waking/ && $0 ~ " pid=" pid " " { begun = 1; work = 0; asked = low = rose = -1 }
        /hrtimer_start.*bpf_timer_cb.*REL/ { chosen[here] = at }
        /sched_switch/ && $0 ~ " next_pid=" pid " " { cpu = here; since = chosen[here] > left[here] ? chosen[here] : at; look() }
        / asked: / { advance(); wanted[number_after("cpu=")] = number_after("perf="); look() }
        /cpu_frequency/ { advance(); khz[number_after("cpu_id=")] = number_after("state="); look() }
        /sched_switch/ && $0 ~ " prev_pid=" pid " " {
            advance(); last = cpu; cpu = -1
            if (rose >= 0 && at - rose_at < moment) rose = -1
            if (begun && $0 ~ /prev_state=S/) { printf "%d %d %d %d %d\n", work, asked, low, rose, last; begun = 0 }
        }
        /sched_switch/ { left[here] = at }' $trace/trace
}

# run FOLDER FIRST_US SECOND_US: jobs of so much work by both programs, under plans for demands of 2 to 10 ms every 28 ms, and of 1.5 to
# 7 ms every 22.
run() {
    folder=$1
    mkdir -p "$folder"
    # Not before grace is in force: onbeat leaves no turn to the other CPU while it loads, and who is late then stays so for long.
    once_there "$folder/begin" taskset -c 0 cycles 28 "$2" 1500 "$folder/log" &
    first=$!
    once_there "$folder/begin" taskset -c 1 cycles 22 "$3" 1500 "$folder/log" &
    second=$!
    onbeat-lab scheduler start grace --json --set target_percent=60 --plan "$first=28ms:/tmp/first" --plan "$second=22ms:/tmp/second" \
        >"$folder/told.jsonl" 2>"$folder/plan" &
    onbeat=$!
    wait_until "grace is in force" 120 in_force grace
    : >"$folder/begin"
    # They measure their loops first.
    sleep 2.5
    echo >$trace/trace
    khz_0=$(cat $policies/policy0/scaling_cur_freq)
    khz_1=$(cat $policies/policy1/scaling_cur_freq)
    echo 1 >$trace/tracing_on
    sleep 2
    echo 0 >$trace/tracing_on
    kill -INT $onbeat
    wait $onbeat
    kill "$first" "$second"
    wait "$first" "$second" || true
    cat "$folder/plan"
    # The first job may have been under way before.
    jobs_of "$first" | tail -n +2 >"$folder/first"
    jobs_of "$second" | tail -n +2 >"$folder/second"
    first_point=$(point_of "$first")
    second_point=$(point_of "$second")
}

# point_of TASK: the work (us) after which its plan speeds up.
point_of() {
    sed -n "s/.*thread $1: .* 1000 MHz after \([0-9.]*\) ms$/\1/p" "$folder/plan" | awk '{ print int($1 * 1000) }'
}

# few OF FOLDER/TASK CONDITION: how many of its jobs are so, and that these are one in 20 at most.
few() {
    check "$1: few jobs $3" "$(awk -v point="$4" "$2" "$1" | wc -l)" -le $(($(wc -l <"$1") / 20))
}

# A tick may pass until the governor follows, which is up to 4 ms of work at the highest speed, and 2 ms at half of it. A thread of
# SCHED_FIFO that wakes has it set the highest for a while: what the scheduler asks for is to be right for each job, what is set
# for nearly all.
stays_slow() { # FOLDER/TASK POINT_US
    check "$1: there are jobs" "$(wc -l <"$1")" -gt 30
    awk -v point="$2" '$1 < point - 100' "$1" >"$1.early"
    echo "$1: $(wc -l <"$1.early") of $(wc -l <"$1") jobs end before the $2 us of work, after $(cut -d ' ' -f 1 "$1" | middle) us of it"
    check "$1: nearly all end early" "$(wc -l <"$1.early")" -ge $(($(wc -l <"$1") * 9 / 10))
    check "$1: no high speed is asked for any of these" "$(awk '$2 >= 0' "$1.early" | wc -l)" = 0
    few "$1" '$3 < 0 || $3 > 4500' "do not begin slowly" "$2"
    few "$1.early" '$4 >= 0' "have their CPU become fast" "$2"
}

rises() { # FOLDER/TASK POINT_US
    check "$1: there are jobs" "$(wc -l <"$1")" -gt 30
    echo "$1: for $(wc -l <"$1") jobs the high speed is asked for after $(awk '$2 >= 0 { print $2 }' "$1" | sort -n | head -n 1) to $(cut -d ' ' -f 2 "$1" | greatest) us of work, planned for $2"
    echo "$1: and set after $(awk '$4 >= 0 { print $4 }' "$1" | sort -n | head -n 1) to $(cut -d ' ' -f 4 "$1" | greatest) us"
    few "$1" '$2 < 0' "never have it" "$2"
    check "$1: for none before the point of its schedule" "$(awk -v point="$2" '$2 >= 0 && $2 < point - 100' "$1" | wc -l)" = 0
    # A CPU that stands still looks late at its timers.
    few "$1" '$2 > point + 500' "have it long after that" "$2"
    few "$1" '$3 < 0 || $3 > 4500' "do not begin slowly" "$2"
    few "$1" '$4 >= 0 && ($4 < point - 100 || $4 > point + 2500)' "become fast elsewhere" "$2"
}

load_cpufreq
for cpu in 0 1; do
    echo schedutil >$policies/policy$cpu/scaling_governor
done
demands 2000 8000 >/tmp/first
demands 1500 5500 >/tmp/second
for event in timer/hrtimer_start sched/sched_waking sched/sched_switch power/cpu_frequency; do
    echo 1 >$trace/events/$event/enable
done
echo 'p:asked scx_bpf_cpuperf_set cpu=%di:s32 perf=%si:u32' >$trace/kprobe_events
echo 1 >$trace/events/kprobes/asked/enable
echo 0 >$trace/tracing_on
taskset -c 0 periodic hog &
hogs=$!
taskset -c 1 periodic hog &
hogs="$hogs $!"
sleep 0.5

run /results/second_is_long 2000 6000
check "the programs have schedules of their own" "$first_point" -gt $((second_point + 500))
stays_slow /results/second_is_long/first "$first_point"
rises /results/second_is_long/second "$second_point"
run /results/first_is_long 8000 1200
rises /results/first_is_long/first "$first_point"
stays_slow /results/first_is_long/second "$second_point"
end_hogs
check "each program ran on its CPU" "$(cut -d ' ' -f 5 /results/*/first | sort -u) $(cut -d ' ' -f 5 /results/*/second | sort -u)" = "0 1"
