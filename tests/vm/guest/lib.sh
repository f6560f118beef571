# What a case can use in the guest: checks that say what they saw, load, and rt-app.

# check "WHAT MUST HOLD" TEST-EXPRESSION...: as test(1); ends the case if it does not hold.
check() {
    what=$1
    shift
    if test "$@"; then
        echo "ok: $what [$*]"
    else
        echo "NOT SO: $what [$*]"
        exit 1
    fi
}

# agree WHAT KERNEL SIMULATED TOLERANCE: whole numbers, by the kernel and by `onbeat-lab sim`.
agree() {
    apart=$(($2 > $3 ? $2 - $3 : $3 - $2))
    check "$1: $2 by the kernel and $3 here are $4 apart at most" "$apart" -le "$4"
}

# percent OF ALL
percent() {
    echo "$1 $2" | awk '{ printf "%d", 100 * $1 / ($2 > 0 ? $2 : 1) + 0.5 }'
}

# middle, mean, greatest: of the whole numbers on standard input; within PERCENT: what so many of a hundred are at most.
within() {
    sort -n | awk -v part="$1" '{ all[NR] = $1 } END { print all[int((NR * part + 99) / 100)] }'
}
middle() {
    within 50
}
greatest() {
    within 100
}
mean() {
    awk '{ sum += $1 } END { print int(sum / NR) }'
}

# decoder_agrees WHAT FOLDER PERCENT US: what srtgen noted in FOLDER/srt.csv, and the jobs of the task srt in FOLDER/jobs.csv: the missed
# deadlines within so many percent of the jobs, the median response times within so many us.
decoder_agrees() {
    # shellcheck disable=SC2046 # two words each
    agree "$1, missed deadlines in percent" \
        "$(percent $(awk -F , 'FNR > 1 { jobs++; late += $7 } END { print late, jobs }' "$2/srt.csv"))" \
        "$(percent $(awk -F , '$1 == "srt" { jobs++; late += $9 } END { print late + 0, jobs }' "$2/jobs.csv"))" "$3"
    agree "$1, the median response time in us" \
        "$(awk -F , 'FNR > 1 { print int(($4 - $2) / 1000) }' "$2/srt.csv" | middle)" \
        "$(awk -F , '$1 == "srt" { print int(($5 - $3) / 1000) }' "$2/jobs.csv" | middle)" "$4"
}

# share_agrees WHAT FOLDER NAME PERCENT: the CPU time that the programs with the logs FOLDER/NAME*.csv had, and that of the task NAME in
# FOLDER/table.
share_agrees() {
    used=$(for log in "$2/$3"*.csv; do
        awk -F , 'FNR == 2 { begin = $2 } { used += $6; end = $4 } END { print 100 * used / (end - begin) }' "$log"
    done | awk '{ sum += $1 } END { printf "%.0f", sum }')
    agree "$1, the CPU time of $3 in percent" "$used" "$(sed -n "s/^$3 .* \([0-9]*\)\.[0-9]*% .*/\1/p" "$2/table")" "$4"
}

# The policy of a thread, by field 41 of its stat file: 0 other, 1 fifo, 2 rr, 6 deadline.
policy_of() {
    sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 39
}

# reserved_threads [PROCESS]: the threads that have a reservation, one a line; of all processes, or of one.
reserved_threads() {
    cat "/proc/"${1:-[0-9]*}"/task/"[0-9]*"/stat" 2>/dev/null |
        awk '{ thread = $1; sub(/.*\) /, "") } $39 == 6 { print thread }'
}

# wait_until "WHAT HAS TO COME" SECONDS COMMAND...: ends the case if the command does not succeed in time.
wait_until() {
    what=$1
    tries=$(($2 * 10))
    shift 2
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || check "$what" never = "in time"
        sleep 0.1
    done
    echo "ok: $what"
}

# kill_with_guard ONBEAT: as if the machine had killed both; nobody puts anything back.
kill_with_guard() {
    busybox killall -q -9 onbeat-guard || true
    kill -9 "$1"
    wait "$1" || true
}

# has_run PROCESS: for how long its first thread has executed, in ns.
has_run() {
    cut -d ' ' -f 1 "/proc/$1/schedstat"
}

# once_there FILE COMMAND...: the command, as soon as there is such a file. Until then its process naps, rarely: naps are jobs, too.
once_there() {
    gate=$1
    shift
    until [ -e "$gate" ]; do sleep 1; done
    exec "$@"
}

# stops NAME PROCESS MESSAGES: the scheduler, which is in force still, ends as it is told, without a word in its messages.
stops() {
    check "$1 is still in force" "$(cat /sys/kernel/sched_ext/root/ops)" = "$1"
    kill -INT "$2"
    wait "$2"
    check "$1 has stopped, and had nothing to say" ! -s "$3"
    check "the kernel is back at its own" "$(cat /sys/kernel/sched_ext/state)" = disabled
}

# Loads the kernel's driver of frequencies and the governor that leaves them to user space; for a case whose head
# names frequencies.
load_cpufreq() {
    for module in /lib/modules/acpi-cpufreq.ko* /lib/modules/cpufreq_userspace.ko*; do
        insmod "$module"
    done
    check "the CPU has frequencies" -d /sys/devices/system/cpu/cpufreq/policy0
}

# that_last: of lines "khz S KHZ", among others, without those frequencies that were taken back within 100 us. On some kernels, up to 6.17, the
# thread that looks every four seconds whether a CPU is stuck has the highest speed for as long as it runs.
that_last() {
    awk '{ line[NR] = $0 }
        $1 == "khz" && last && $2 - at < 0.0001 { gone[last] = gone[NR] = 1; last = 0; next }
        $1 == "khz" { last = NR; at = $2 }
        END { for (n = 1; n <= NR; n++) if (!gone[n]) print line[n] }'
}

# start_hogs N: programs that want all the CPU time there is, until end_hogs.
start_hogs() {
    hogs=
    for _ in $(seq "$1"); do
        while :; do :; done &
        hogs="$hogs $!"
    done
}

end_hogs() {
    [ -n "$hogs" ] || return 0
    kill $hogs
    wait $hogs || true
}

# rt_app_task NAME PERIOD_US RUN_US [MORE]: a periodic task of rt-app's, with MORE of its properties.
rt_app_task() {
    echo "\"$1\": { \"loop\": -1, \"run\": $3, ${4:+$4,}" \
        "\"timer\": { \"ref\": \"unique\", \"period\": $2, \"mode\": \"absolute\" } }"
}

# rt_app_deadline RUNTIME_US PERIOD_US: the MORE of a task that reserves CPU time for itself.
rt_app_deadline() {
    echo "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": $1, \"dl-period\": $2, \"dl-deadline\": $2"
}

# rt_app_plan FOLDER SECONDS TASKS: makes FOLDER for rt-app's logs, and writes FOLDER/plan.json for it.
# Wants calibrate_rt_app before it.
rt_app_plan() {
    mkdir -p "$1"
    cat >"$1/plan.json" <<JSON
{ "global": { "duration": $2, "calibration": $rt_app_speed, "default_policy": "SCHED_OTHER",
              "lock_pages": false, "logdir": "$1", "log_basename": "log", "gnuplot": false },
  "tasks": { $3 } }
JSON
}

# Measures rt-app's busy loop on the idle machine into rt_app_speed, so that all runs do the same work.
calibrate_rt_app() {
    rt_app_speed='"CPU0"'
    rt_app_plan /tmp/calibration 1 "$(rt_app_task probe 10000 1000)"
    rt_app_speed=$(rt-app /tmp/calibration/plan.json 2>&1 | sed -n 's/.*pLoad = \([0-9]*\)ns.*/\1/p' | head -n 1)
    check "rt-app has measured its loop's speed" -n "$rt_app_speed"
}

# responses LOG PERIOD_US FROM_S: the response times, in us, of the jobs after the first FROM_S seconds.
responses() {
    awk -v period="$2" -v from="$3" '!/^#/ { if (!start) start = $5; if ($5 - start >= from * 1e6) print period - $8 }' "$1"
}

# longest LOG PERIOD_US FROM_S: the longest of them.
longest() {
    responses "$@" | sort -n | tail -n 1
}

# late LOG PERIOD_US FROM_S: how many per mille of them are longer than the period.
late() {
    responses "$@" | awk -v period="$2" '{ jobs++ } $1 > period { late++ } END { print jobs ? int(late * 1000 / jobs) : 1000 }'
}

# run_while_frequency_falls FOLDER GOVERNOR WAY LOADED_JOBS JOBS [OPTION...]: keeps a task with a period of 100 ms by
# onbeat run --always with these options, beside a load that ends after so many of its jobs, so that the frequency falls from
# 2400 to 1500 MHz. WAY: "protocol", onbeat sets the frequency too; "alone", another onbeat does, that knows
# nothing of the task, as a daemon of its own would.
run_while_frequency_falls() {
    folder=$1 governor=$2 way=$3 loaded=$4 jobs=$5
    shift 5
    mkdir -p "$folder"
    echo "$governor" >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
    daemon=
    if [ "$way" = protocol ]; then
        set -- --config 'power.rule="band"' "$@"
    else
        sleep 1000 &
        daemon=$!
        onbeat attach --always --quiet --config 'power.rule="band"' --log "$folder/daemon.jsonl" "$daemon" &
    fi
    start_hogs 1
    onbeat run --always --quiet --report "$folder/report.json" --log "$folder/log.jsonl" "$@" -- \
        cycles 100 13000 "$jobs" "$folder/jobs" &
    task=$!
    until pidof cycles >/dev/null; do
        kill -0 "$task"
        usleep 10000
    done
    usleep "$((loaded * 100000))"
    end_hogs
    wait "$task"
    if [ -n "$daemon" ]; then
        kill "$daemon"
        wait
    fi
}

# overruns FOLDER FROM_JOB: how many of its jobs from that one on ended after the release of the next.
overruns() {
    awk -v from="$2" '$1 >= from && $4 - $2 > 100000 { late++ } END { print late + 0 }' "$1/jobs"
}

# lowest_khz FOLDER: the lowest frequency that one of its jobs began at.
lowest_khz() {
    sort -n -k 6,6 "$1/jobs" | head -n 1 | cut -d ' ' -f 6
}

# in_force NAME: whether this scheduler is; "none": the kernel's own.
in_force() {
    state=$(cat /sys/kernel/sched_ext/state)
    if [ "$1" = none ]; then
        test "$state" = disabled
    else
        test "$state" = enabled && test "$(cat /sys/kernel/sched_ext/root/ops)" = "$1"
    fi
}

# make_film FILE FRAMES: a film at 25 frames a second, in a format that needs nobody to encode it.
make_film() {
    {
        echo "YUV4MPEG2 W160 H120 F25:1 Ip A1:1 C420jpeg"
        for _ in $(seq "$2"); do
            echo FRAME
            head -c 28800 /dev/urandom
        done
    } >"$1"
}

# play FILE: mplayer without sound, display or keyboard; it computes a larger picture of each frame.
play() {
    mplayer -nosound -vo null -vf scale=480:360 -nolirc -noautosub -noconsolecontrols -nojoystick "$1" 2>/dev/null </dev/null
}

# check_film NAME LOG FRAMES: what `shown` has noted of a player under the scheduler NAME.
check_film() {
    longest_ms=$(awk 'NR > 1 && $1 - last > longest { longest = $1 - last } { last = $1 } END { print int(longest / 1000) }' "$2")
    echo "$1: $(wc -l <"$2") frames in $(($(tail -n 1 "$2") / 1000)) ms, the longest pause between two $longest_ms ms"
    check "$1: the player has shown every frame" "$(wc -l <"$2")" -ge "$3"
    check "$1: it never stood still for a quarter of a second" "$longest_ms" -lt 250
}

# start_service FILE: a bus of its own and the service on it, with this configuration; its log is in /tmp/service. For a case that needs
# dbus-daemon.
start_service() {
    cat >/tmp/bus.conf <<'BUS'
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/tmp/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>
BUS
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus
    dbus-daemon --config-file=/tmp/bus.conf --nofork &
    bus=$!
    wait_until "the bus is there" 20 [ -S /tmp/bus ]
    onbeat daemon --config "$1" --state-dir /run/onbeat >/tmp/service 2>&1 &
    service=$!
    wait_until "the service serves" 60 grep -q serving /tmp/service
}

# end_service: with success, and nobody has a reservation then.
end_service() {
    kill "$service"
    status=0
    wait "$service" || status=$?
    check "the service ends as it is told" "$status" = 0
    check "nobody has a reservation any more" -z "$(reserved_threads)"
    kill "$bus"
    wait "$bus" || true
}
