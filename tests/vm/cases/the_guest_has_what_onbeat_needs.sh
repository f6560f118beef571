# The kernel in the guest has SCHED_DEADLINE, BPF with BTF, tracefs and sched_ext, and onbeat finds them.
# needs: onbeat
check "the kernel describes its types" -s /sys/kernel/btf/vmlinux
check "sched_ext is there" -d /sys/kernel/sched_ext
check "the scheduler's events can be traced" -d /sys/kernel/tracing/events/sched/sched_waking
onbeat doctor || true
policy=$(onbeat reserve --runtime 5ms --period 20ms -- sh -c 'sed "s/.*) //" /proc/$$/stat | cut -d " " -f 39')
check "a reserved program runs under SCHED_DEADLINE" "$policy" = 6
