# With --partition each CPU but the first is a root domain, processes are packed onto them, and all is put back, also by restore.
# needs: onbeat rt-app
# cpus: 2
# time: virtual
# seconds: 1200
cpuset=/sys/fs/cgroup

# until_true WHAT COMMAND...: looks every second, for a minute.
until_true() {
    what=$1
    shift
    for _ in $(seq 60); do
        if "$@"; then
            echo "ok: $what"
            return
        fi
        sleep 1
    done
    cat /tmp/onbeat.log
    check "$what" -z "it never came"
}

both_are_reserved() {
    for pid in $first $second; do
        reserved=no
        for thread in "/proc/$pid/task/"*; do
            [ "$(policy_of "${thread##*/}")" != 6 ] || reserved=yes
        done
        [ $reserved = yes ] || return 1
    done
}

one_was_moved() {
    test -n "$(cat $cpuset/onbeat-*-cpu1/cgroup.procs)"
}

partitions() {
    find $cpuset -name 'onbeat-*'
}

both_are_back() {
    grep -qx 0::/ "/proc/$first/cgroup" && grep -qx 0::/ "/proc/$second/cgroup"
}

# Each needs more than half of the 8% of a CPU that onbeat may hand out.
calibrate_rt_app
rt_app_plan /tmp/first 600 "$(rt_app_task first 50000 2500)"
rt_app_plan /tmp/second 600 "$(rt_app_task second 60000 3000)"
rt-app /tmp/first/plan.json >/dev/null 2>&1 &
first=$!
rt-app /tmp/second/plan.json >/dev/null 2>&1 &
second=$!

onbeat attach --partition --no-trials --cap 8% --log /tmp/onbeat.log $first $second &
onbeat=$!
until_true 'both programs have a reservation' both_are_reserved
check 'the second CPU is a partition' "$(cat $cpuset/onbeat-*-cpu1/cpuset.cpus.partition)" = root
check 'the first is left for the rest' "$(cat $cpuset/cpuset.cpus.effective)" = 0
check 'one program was moved' "$(cat $cpuset/onbeat-*-cpu1/cgroup.procs | wc -l)" = 1
cp /tmp/onbeat.log /results/
kill -INT $onbeat
wait $onbeat
check 'no partition is left' -z "$(partitions)"
check 'both programs are back' "$(both_are_back && echo yes)" = yes

onbeat attach --partition --no-trials --cap 8% --log /tmp/onbeat.log $first $second &
onbeat=$!
until_true 'one program was moved again' one_was_moved
kill -KILL $onbeat
wait $onbeat || true
check 'a killed onbeat leaves its partition' -n "$(partitions)"
onbeat restore
check 'no partition is left after restoring' -z "$(partitions)"
check 'both programs are back after restoring' "$(both_are_back && echo yes)" = yes
check 'both CPUs are for all again' "$(cat $cpuset/cpuset.cpus.effective)" = 0-1
kill $first $second
