# The kernel has warned, as its taint flags say, but no word of it arrived.
# told: the kernel is tainted by a warning or an oops: 512
echo 512 >/proc/sys/kernel/tainted
