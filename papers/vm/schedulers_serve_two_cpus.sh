# Under each scheduler, on two CPUs: pinned and free hogs, periodic programs, processes that come and go, a kill.
# needs: onbeat-lab srtgen.c taskset nice renice
# cpus: 2
# time: virtual
# long: yes
hog="srtgen share=1000 period_us=10000 seconds=60 log=/dev/null"
for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 60 in_force "$name"
    $hog &
    free=$!
    $hog &
    free="$free $!"
    taskset -c 0 $hog &
    pinned=$!
    taskset -c 1 $hog &
    pinned="$pinned $!"
    srtgen period_us=40000 share=200 seconds=3 mdn=1 log=/tmp/srt &
    srt=$!
    srtgen period_us=30303 share=200 seconds=3 mdn=1 log=/tmp/other &
    other=$!
    for n in $(seq 40); do
        # A child that goes at once, one that changes its place, one that changes its nice value.
        (:) &
        taskset -c "$((n % 2))" true &
        nice -n 5 true
    done
    renice -n 10 $free >/dev/null
    wait "$srt" "$other"
    for process in $pinned; do
        check "$name: a hog had a quarter of its share" "$(has_run "$process")" -ge 450000000
    done
    # Theirs is half of that. To BeRate the children are part of the load for a second or two, and who computes all the time has
    # a deadline seconds away: who was given a nice value when they came waits until the others have used up theirs.
    least=$([ "$name" = berate ] && echo 50000000 || echo 225000000)
    for process in $free; do
        check "$name: a nice hog had some of its share" "$(has_run "$process")" -ge "$least"
    done
    check "$name: the periodic programs did four of five jobs" "$(cat /tmp/srt /tmp/other | wc -l)" -ge 140
    check "$name is still in force" "$(cat /sys/kernel/sched_ext/root/ops)" = "$name"
    kill -9 "$scheduler"
    wait_until "the kernel is back at its own" 10 in_force none
    kill $free $pinned
    wait || true
    check "$name had nothing to say" ! -s /tmp/messages
done
check "no scheduler was put out" "$(dmesg | grep -c 'sched_ext.*\(runtime error\|stall\|errored\)')" = 0
