# The kernel panics, with which the emulator ends as if all were well.
# told: the kernel complained: Kernel panic
echo c >/proc/sysrq-trigger
