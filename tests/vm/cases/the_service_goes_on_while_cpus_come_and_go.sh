# A CPU goes and comes back, programs are put into a cpuset of one CPU and out of it, and sched_rt_runtime_us is changed: the service goes on, what
# it keeps has its reservations after each of them, and what it cannot do meanwhile it says with what to do.
# needs: onbeat dbus-daemon periodic.c taskset
# cpus: 2
# time: virtual
# long: yes
online=/sys/devices/system/cpu/cpu1/online
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
printf 'always = true\nscan = "200ms"\n[[rule]]\nname = "it"\nprogram = "/usr/bin/periodic"\n' >/tmp/onbeat.toml
start_service /tmp/onbeat.toml
periodic 40000 $((2 * rounds_in_1ms)) 600 /dev/null &
first=$!
periodic 30000 $((2 * rounds_in_1ms)) 600 /dev/null &
second=$!

both_are_reserved() {
    test "$(policy_of "$first")" = 6 && test "$(policy_of "$second")" = 6
}
# goes_on AFTER: the service lives, and both have reservations and go on.
goes_on() {
    wait_until "$1: both have reservations" 60 both_are_reserved
    before=$(has_run "$first")
    sleep 1
    check "$1: the first one runs" "$(has_run "$first")" -gt "$before"
    check "$1: the service is there" -d "/proc/$service"
    check "$1: it fell over nothing" "$(grep -c 'panicked\|ERROR' /tmp/service)" = 0
}

goes_on "at first"
for round in 1 2 3; do
    echo 0 >$online
    goes_on "round $round, without the second CPU"
    echo 1 >$online
    goes_on "round $round, with it again"
done

# The kernel moves a thread with a reservation to a cpuset, and changes no reservation there.
cd /sys/fs/cgroup
echo +cpuset >cgroup.subtree_control
mkdir narrow
echo 0 >narrow/cpuset.cpus
echo "$first" >narrow/cgroup.procs
goes_on "the first in a cpuset of one CPU"
echo "$first" >cgroup.procs
goes_on "the first out of it"
echo 0-1 >narrow/cpuset.cpus
echo "$second" >narrow/cgroup.procs
echo 1 >narrow/cpuset.cpus
goes_on "the second in a cpuset that became narrow"
# A program that begins there cannot have a reservation.
sh -c "echo \$\$ >narrow/cgroup.procs; exec periodic 50000 $((2 * rounds_in_1ms)) 600 /dev/null" &
third=$!
wait_until "onbeat says why, and what to do" 60 grep -q "task $third may run on CPU 1 alone.*widen it with" /tmp/service
check "the third has none" "$(policy_of "$third")" = 0
echo "$third" >cgroup.procs
has_one() { test "$(policy_of "$third")" = 6; }
wait_until "once it is out, it has one" 60 has_one
echo "$second" >cgroup.procs
cd /
goes_on "all out of it"
kill "$third"
wait "$third" || true

runtime=/proc/sys/kernel/sched_rt_runtime_us
# Less than what is held, which the kernel refuses; less than what could be had; no admission test; as at first.
for us in 1000 800000 -1 950000; do
    echo "$us" >$runtime || check "the kernel refuses less than what is held" "$us" = 1000
    goes_on "sched_rt_runtime_us $us, now $(cat $runtime)"
    # What begins now has a reservation, too.
    periodic 50000 $((2 * rounds_in_1ms)) 600 /dev/null &
    third=$!
    wait_until "one that begins then has one" 60 has_one
    kill "$third"
    wait "$third" || true
done

cat /tmp/service >/results/log
kill "$first" "$second"
wait "$first" "$second" || true
end_service
