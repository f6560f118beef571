# Under reserve, groups that hold more than a CPU when the other one goes get the same part of their runtimes each, and all of it when it is back.
# Those without a reservation keep their 5%.
# needs: onbeat-lab srtgen.c
# cpus: 2
# time: virtual
# long: yes
online=/sys/devices/system/cpu/cpu1/online
hog="srtgen share=1000 period_us=10000 seconds=600 log=/dev/null"

# ran_in_4s PROCESS...: how long each runs in 4 s, in ms.
ran_in_4s() {
    before=
    for process; do before="$before$(has_run "$process") "; done
    sleep 4
    for process; do
        echo "$((($(has_run "$process") - ${before%% *}) / 1000000))"
        before=${before#* }
    done
}

$hog &
first=$!
$hog &
second=$!
$hog &
rest=$!
onbeat-lab scheduler start reserve --quiet --group "$first=16ms/20ms" --group "$second=8ms/20ms" 2>/tmp/messages &
scheduler=$!
wait_until "reserve is in force" 60 in_force reserve
sleep 1
had=$(ran_in_4s "$first" "$second" "$rest" | tr '\n' ' ')
echo "on two CPUs: $had ms of 4000"
check "the first has its 80%" "$(echo "$had" | cut -d ' ' -f 1)" -ge 3000
check "the second has its 40%" "$(echo "$had" | cut -d ' ' -f 2)" -ge 1400

echo 0 >$online
wait_until "onbeat says so" 5 grep -q '1 CPUs are online, and each group gets' /tmp/messages
cat /tmp/messages
sleep 1
had=$(ran_in_4s "$first" "$second" "$rest" | tr '\n' ' ')
echo "on one CPU: $had ms of 4000"
check "the first has twice as much as the second" "$(echo "$had" | awk '{ print ($1 > 1.7 * $2 && $1 < 2.3 * $2) }')" = 1
check "both have nearly all" "$(echo "$had" | awk '{ print int($1 + $2) }')" -ge 3200
check "the rest keeps a part" "$(echo "$had" | cut -d ' ' -f 3)" -ge 100

echo 1 >$online
wait_until "onbeat says so" 5 grep -q '2 CPUs are online, and each group gets 100%' /tmp/messages
sleep 1
had=$(ran_in_4s "$first" "$second" "$rest" | tr '\n' ' ')
echo "on two CPUs again: $had ms of 4000"
check "the first has its 80% again" "$(echo "$had" | cut -d ' ' -f 1)" -ge 3000
check "the second has its 40% again" "$(echo "$had" | cut -d ' ' -f 2)" -ge 1400
check "reserve is still in force" "$(cat /sys/kernel/sched_ext/root/ops)" = reserve
kill -INT "$scheduler"
wait "$scheduler"
kill "$first" "$second" "$rest"
wait || true
