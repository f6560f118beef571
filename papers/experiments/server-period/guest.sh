# LFS++'s Fig. 1 and 2: what a task needs of servers of many periods, and what LFS gives one.
# needs: onbeat-experiments
# seconds: 3600
#
# The task of Fig. 1 has opponents that take all that its server leaves: the admission test must be off.
# Budgets are enforced at the tick, as kernels are shipped, then exactly.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
onbeat-experiments served --needed /results/tick.json
onbeat-experiments served --lfs /results/lfs.json
echo HRTICK_DL >/sys/kernel/debug/sched/features
onbeat-experiments served --needed /results/exact.json
