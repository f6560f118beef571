# Under reserve: a thread without a reservation that may use one CPU only has a twentieth of it, also beside a group with a budget of
# that whole CPU. The group has the rest, and the watchdog of 4 s finds nobody that starves.
# needs: onbeat-lab crew.c taskset
# cpus: 2
# time: virtual
# long: yes
# Sets now_cs to the clock, in hundredths of a second, and ran_ns to what the group's threads have executed.
look() {
    read -r now_cs _ </proc/uptime
    now_cs=${now_cs%.*}${now_cs#*.}
    ran_ns=$(cat "/proc/$group/task/"*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }')
}

taskset -c 0 crew 1 hog 60 /tmp/group &
group=$!
sleep 0.5
onbeat-lab scheduler start reserve --quiet --watchdog 4s --group "$group=100ms/100ms" 2>/tmp/messages &
scheduler=$!
wait_until "reserve is in force" 60 in_force reserve
taskset -c 0 crew 2 hog 8 /results/rest &
rest=$!
sleep 1
look
before_ns=$ran_ns began_cs=$now_cs
sleep 6
look
percent=$(((ran_ns - before_ns) / 100000 / (now_cs - began_cs)))
wait "$rest"
kill "$group"
echo "of 8 s the two threads without a reservation had $(cut -d ' ' -f 4 /results/rest | tr '\n' ' ')us, the group had $percent%"
least=$(cut -d ' ' -f 4 /results/rest | sort -n | head -n 1)
# A twentieth of 8 s is 200 ms for each of the two.
check "each thread without a reservation had its part" "$least" -ge 100000
check "the group had nine tenths of the CPU at least" "$percent" -ge 90
stops reserve "$scheduler" /tmp/messages
