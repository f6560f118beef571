# The case itself is content, but the kernel's watchdog has ended a scheduler in it.
# told: the kernel put a scheduler out: sched_ext: BPF scheduler "best" disabled
# needs: onbeat-lab chrt srtgen.c
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
onbeat-lab scheduler start best --watchdog 1s --quiet &
scheduler=$!
wait_until "it is in force" 30 in_force best
srtgen share=1000 period_us=10000 seconds=20 log=/dev/null &
starved=$!
chrt -f 50 sh -c 'end=$(($(cut -d . -f 1 /proc/uptime) + 3)); while [ "$(cut -d . -f 1 /proc/uptime)" -lt "$end" ]; do :; done'
wait "$scheduler" || true
kill "$starved"
wait || true
