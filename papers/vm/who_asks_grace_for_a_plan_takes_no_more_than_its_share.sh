# Under GRACE-OS of all tasks a program may ask for a plan if --allow names its user or group: that alone gives it no CPU time, and with a user's
# plans go half of the CPU at most. Other programs ask in vain.
# needs: onbeat-lab cycles.c talker.c setpriv
# long: yes
# cpufreq: 1000 500
load_cpufreq
# By its path: the shell has a smaller one of its own.
as_user="/usr/bin/setpriv --reuid 1000 --clear-groups"
# An ordinary user finds nothing in the guest otherwise.
chmod a+rx / /tmp
touch /tmp/wide /tmp/narrow /tmp/stranger
chmod 666 /tmp/wide /tmp/narrow /tmp/stranger

# Root alone by default; and --allow for another user, or a group that the program is not in, is none for this one.
onbeat-lab scheduler start grace --allow 1001 --allow @1000 2>/tmp/messages >/dev/null &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
parser=$(cut -d ' ' -f 1 "/proc/$onbeat/task/$onbeat/children")
check "programs' files are read without capabilities" "$(sed -n 's/^CapEff:\t//p' "/proc/$parser/status")" = 0000000000000000
$as_user cycles 16 4000 150 /tmp/stranger 0 says
# It asks without end, each time for something else.
$as_user talker floods &
asks=$!
sleep 2
kill "$asks"
kill -INT "$onbeat"
wait "$onbeat"
cat /tmp/messages
check "its first request is refused, with what to do" "$(grep -c 'gets no plan: its user may request no plan: start grace with --allow 1000' /tmp/messages)" = 1
check "no other one is told" "$(grep -c 'gets no plan' /tmp/messages)" = 1
check "it has no plan" "$(grep -c 'of work every 16 ms' /tmp/messages)" = 0

onbeat-lab scheduler start grace --allow 1000 --quiet 2>/tmp/messages &
onbeat=$!
wait_until "grace is in force" 60 in_force grace

# It asks once, and never ends a job; beside four hogs its share is a fifth.
$as_user talker leaves 1000000 &
asks=$!
sleep 4
start_hogs 4
of_who_asks=$(has_run "$asks")
sleep 4
of_who_asks=$((($(has_run "$asks") - of_who_asks) / 1000000))
end_hogs
kill "$asks"
echo "who asks for a plan and ends no job had $of_who_asks ms of 4000 beside four hogs"
check "it has not much more than any of them" "$of_who_asks" -le 1200
stops grace "$onbeat" /tmp/messages

onbeat-lab scheduler start grace --allow @2000 --json >/results/told.jsonl 2>/results/messages &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
in_group="/usr/bin/setpriv --reuid 1000 --groups 2000"
$in_group cycles 16 10000 200 /tmp/wide 0 says
$in_group cycles 16 5000 200 /tmp/narrow 0 says
kill -INT "$onbeat"
wait "$onbeat"
cat /results/messages
check "there were jobs" "$(cat /tmp/wide /tmp/narrow | wc -l)" = 400
budgets=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/messages | awk '{ print int($1) }')
check "what fits into half of the CPU has a plan" "$(echo "$budgets" | grep -c '^5$')" -ge 1
check "what does not fit has none" "$(echo "$budgets" | grep -c '^1')" = 0
