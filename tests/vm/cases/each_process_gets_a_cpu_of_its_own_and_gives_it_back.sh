# With enforcement.partition each CPU but the first is a root domain, processes are packed onto them, and all is put back, also by restore.
# needs: onbeat rt-app
# cpus: 2
# time: virtual
cpuset=/sys/fs/cgroup

both_are_reserved() {
    test -n "$(reserved_threads "$first")" && test -n "$(reserved_threads "$second")"
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

onbeat attach --config enforcement.partition=true --no-trials --cap 8% --log /results/onbeat.log $first $second &
onbeat=$!
wait_until 'both programs have a reservation' 60 both_are_reserved
check 'the second CPU is a partition' "$(cat $cpuset/onbeat-*-cpu1/cpuset.cpus.partition)" = root
check 'the first is left for the rest' "$(cat $cpuset/cpuset.cpus.effective)" = 0
check 'one program was moved' "$(cat $cpuset/onbeat-*-cpu1/cgroup.procs | wc -l)" = 1
kill -INT $onbeat
wait $onbeat
check 'no partition is left' -z "$(partitions)"
check 'both programs are back' "$(both_are_back && echo yes)" = yes

onbeat attach --config enforcement.partition=true --no-trials --cap 8% --log /results/killed.log $first $second &
onbeat=$!
wait_until 'one program was moved again' 60 one_was_moved
kill_with_guard $onbeat
check 'a killed onbeat leaves its partition' -n "$(partitions)"
onbeat restore
check 'no partition is left after restoring' -z "$(partitions)"
check 'both programs are back after restoring' "$(both_are_back && echo yes)" = yes
check 'both CPUs are for all again' "$(cat $cpuset/cpuset.cpus.effective)" = 0-1
kill $first $second
