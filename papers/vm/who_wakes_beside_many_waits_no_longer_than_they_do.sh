# Under reserve, without a reservation: who may use only a CPU with four others comes to run there, although those of the other CPU, which are
# one, have had four times as much each. Their one queue had it wait until they have as much.
# needs: onbeat-lab taskset
# long: yes
# cpus: 2
# time: virtual
onbeat-lab scheduler start reserve --quiet 2>/tmp/messages &
scheduler=$!
wait_until "reserve is in force" 30 in_force reserve
start_hogs 5
taskset -p 1 "${hogs##* }" >/dev/null
for hog in ${hogs% *}; do
    taskset -p 2 "$hog" >/dev/null
done
sleep 12
began=$(cut -d . -f 1 /proc/uptime)
taskset -c 1 true
took=$(($(cut -d . -f 1 /proc/uptime) - began))
end_hogs
check "a program came and went on the full CPU within six seconds" "$took" -le 6
stops reserve "$scheduler" /tmp/messages
