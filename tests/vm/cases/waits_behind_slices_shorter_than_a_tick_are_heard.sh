# With exact slices, the default from Linux 7.3 on, a hog has one CPU for 0.7 ms at a time.
# needs: onbeat periodic.c
echo HRTICK >/sys/kernel/debug/sched/features
echo 700000 >/sys/kernel/debug/sched/base_slice_ns
periodic 100000 1000 1 /tmp/calibration
rounds=$(awk '$3 > 0 { print int(1000000 / $4); exit }' /tmp/calibration)
start_hogs 4
onbeat record -q -o /tmp/recording -- periodic 40000 $((rounds * 10)) 2 /tmp/jobs
end_hogs
check "it waits for hogs" "$(grep -c '"waited"' /tmp/recording)" -gt 10
