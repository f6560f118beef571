# A scheduler that the kernel puts out, by its watchdog or by hand, leaves the kernel's own in force, and onbeat says why.
# needs: onbeat onbeat-lab chrt srtgen.c
# puts out: yes
# long: yes
echo -1 >/proc/sys/kernel/sched_rt_runtime_us

onbeat-lab scheduler start best --watchdog 1s --quiet 2>/tmp/messages &
scheduler=$!
wait_until "it is in force" 30 in_force best
# Nobody else runs for longer than the watchdog allows.
srtgen share=1000 period_us=10000 seconds=20 log=/tmp/before &
starved=$!
chrt -f 50 sh -c 'end=$(($(cut -d . -f 1 /proc/uptime) + 4)); while [ "$(cut -d . -f 1 /proc/uptime)" -lt "$end" ]; do :; done'
status=0
wait "$scheduler" || status=$?
cat /tmp/messages
check "onbeat ended with a failure" "$status" = 1
check "it says that the kernel put it out" "$(grep -c 'the kernel has ended best' /tmp/messages)" = 1
check "it says that a task was starved" "$(grep -c 'stall' /tmp/messages)" = 1
check "the kernel is back at its own" "$(cat /sys/kernel/sched_ext/state)" = disabled
kill "$starved"
wait || true

# By hand, each of them.
for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages -- srtgen period_us=40000 share=300 seconds=4 log=/tmp/during &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    wait_until "its program runs" 10 pidof srtgen
    echo S >/proc/sysrq-trigger
    wait_until "the kernel is back at its own" 5 in_force none
    status=0
    wait "$scheduler" || status=$?
    cat /tmp/messages
    check "the program went on to its end, and its status is onbeat's" "$status" = 0
    check "it did all its jobs" "$(wc -l </tmp/during)" -gt 80
    check "onbeat says how the scheduler ended" "$(grep -c "the kernel has ended $name" /tmp/messages)" = 1
    check "nothing is left under SCHED_EXT" "$(onbeat-lab scheduler status --json | sed 's/.*"chosen":\([0-9]*\).*/\1/')" = 0
done

# What a killed loader has left under SCHED_EXT, restore puts back.
onbeat-lab scheduler start linux24 --quiet -- sh -c 'srtgen period_us=40000 share=300 seconds=20 log=/tmp/killed & wait' &
scheduler=$!
wait_until "it is in force" 30 in_force linux24
wait_until "its program runs" 10 pidof srtgen
program=$(pidof srtgen)
wait_until "what it started is chosen" 5 test "$(policy_of "$program")" = 7
sleep 1
kill -9 "$scheduler"
wait_until "the kernel is back at its own" 5 in_force none
check "the program is there" "$(policy_of "$program")" = 7
onbeat restore
check "it is as it was before" "$(policy_of "$program")" = 0
check "nothing is left under SCHED_EXT" "$(onbeat-lab scheduler status --json | sed 's/.*"chosen":\([0-9]*\).*/\1/')" = 0
