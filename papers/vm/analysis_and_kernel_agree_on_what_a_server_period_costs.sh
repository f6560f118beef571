# LFS++'s Fig. 1: the least runtime with which 20 ms every 100 ms meet their deadlines, as the analysis says, within a tick.
# needs: onbeat-experiments
#
# The task has opponents that take all that its server leaves, as early as they may: so the kernel's
# admission test must be off. Budgets are enforced at the tick, as kernels are shipped.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
onbeat-experiments served --short --needed /results/tick.json
