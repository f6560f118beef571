# The kernel warns, at the level of its own warnings, and the case ends well.
# told: the kernel complained: WARNING: 
echo '<4>WARNING: CPU: 0 PID: 1 at kernel/sched/deadline.c:1' >/dev/kmsg
