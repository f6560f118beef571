# Programs that may use only the second CPU stand in line for it when it is taken away, under each scheduler: the kernel does not have to
# wait for them, they run on elsewhere, and the CPU is used again when it comes back.
# needs: onbeat-lab taskset
# long: yes
# cpus: 2
# time: virtual
online=/sys/devices/system/cpu/cpu1/online

# milliseconds COMMAND...: how long it takes.
milliseconds() {
    began=$(cut -d ' ' -f 1 /proc/uptime | tr -d .)
    "$@"
    echo $((10 * ($(cut -d ' ' -f 1 /proc/uptime | tr -d .) - began)))
}

switch() {
    echo "$1" >$online
}

# goes_on PROCESS SINCE_NS: whether it has run for 50 ms since then.
goes_on() {
    test $(($(has_run "$1") - $2)) -ge 50000000
}

# It frees in a worker what it ran a scheduler from, which comes to an end only if it can call all CPUs.
no_worker_is_held_up() {
    ! grep -q '^State:.D' /proc/[0-9]*/status
}

for name in linux24 best berate grace reserve; do
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    # BeRate lets who only computes wait for seconds beside children that come and go, as those of who asks here do.
    seconds=1
    [ "$name" != berate ] || seconds=15
    start_hogs 3
    everywhere=${hogs##* }
    bound=${hogs% *}
    for round in 1 2 3; do
        for hog in $bound; do
            taskset -p 2 "$hog" >/dev/null
        done
        sleep 0.5
        check "$name, round $round: the CPU is away within a second" "$(milliseconds switch 0)" -le 1000
        first=$(has_run "${bound##* }")
        wait_until "$name, round $round: who waited for it runs elsewhere" "$seconds" goes_on "${bound##* }" "$first"
        check "$name, round $round: it is back within a second" "$(milliseconds switch 1)" -le 1000
        taskset -p 2 "$everywhere" >/dev/null
        first=$(has_run "$everywhere")
        wait_until "$name, round $round: and is used" "$seconds" goes_on "$everywhere" "$first"
        taskset -p 3 "$everywhere" >/dev/null
    done
    end_hogs
    stops "$name" "$scheduler" /tmp/messages
    sleep 0.5
    wait_until "the kernel has done away with $name" 10 no_worker_is_held_up
done
