# Each tracer finds the period of a program on this kernel, and BPF tells who woke whom, and what a timer did.
# needs: onbeat rt-app
# long: yes
onbeat doctor
check "doctor says that wakers are told" "$(onbeat doctor | grep -c '^wakers  *full')" = 1

calibrate_rt_app
rt_app_plan /results/plan 2 "$(rt_app_task a 20000 4000)"
rt_app_plan /results/long 60 "$(rt_app_task a 20000 4000)"
rt-app /results/long/plan.json >/dev/null 2>&1 &
for tracer in bpf bpf-syscalls tracefs perf; do
    onbeat record --quiet --tracer "$tracer" --duration 2s -o "/results/$tracer" --pid $!
done
kill $!
# It is linked dynamically, or the preloaded library would hear nothing.
for tracer in ptrace preload; do
    onbeat record --quiet --tracer "$tracer" -o "/results/$tracer" -- rt-app /results/plan/plan.json >/dev/null 2>&1
done
for tracer in bpf bpf-syscalls tracefs perf ptrace preload; do
    period=$(onbeat analyze --json "/results/$tracer" | sed -n 's/.*"period_ns":\([0-9]*\).*/\1/p' | head -n 1)
    check "$tracer finds a period of 20 ms, to 1%" "$(((${period:-0} + 100000) / 200000))" = 100
done
by_timer=$(grep '"event":"burst"' /results/bpf | grep -c '"waker":0')
check "no thread is said to have done what a timer did" \
    "$(percent "$by_timer" "$(grep -c '"event":"burst"' /results/bpf)")" -ge 95

onbeat record --quiet --tracer bpf --children -o /results/pair -- \
    sh -c 'i=0; while [ $i -lt 50 ]; do usleep 20000; echo beat; i=$((i + 1)); done | while read -r _; do :; done'
writer=$(sed -n 's/.*"waker":\([1-9][0-9]*\).*/\1/p' /results/pair | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2, $1 }')
check "a reader is woken by its writer, who does it 50 times" "${writer#* }" -ge 45
