# Under GRACE-OS of all tasks any program may ask for a plan: that alone gives it no CPU time, and with a user's plans go half of the CPU at most.
# needs: onbeat cycles.c talker.c setpriv
# long: yes
# cpufreq: 1000 500
load_cpufreq
# By its path: the shell has a smaller one of its own.
as_user="/usr/bin/setpriv --reuid 1000 --clear-groups"
# An ordinary user finds nothing in the guest otherwise.
chmod a+rx / /tmp
touch /tmp/wide /tmp/narrow
chmod 666 /tmp/wide /tmp/narrow
onbeat scheduler start grace --quiet 2>/tmp/messages &
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

onbeat scheduler start grace --json >/results/told.jsonl 2>/results/messages &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
$as_user cycles 16 10000 200 /tmp/wide 0 says
$as_user cycles 16 5000 200 /tmp/narrow 0 says
kill -INT "$onbeat"
wait "$onbeat"
cat /results/messages
check "there were jobs" "$(cat /tmp/wide /tmp/narrow | wc -l)" = 400
budgets=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/messages | awk '{ print int($1) }')
check "what fits into half of the CPU has a plan" "$(echo "$budgets" | grep -c '^5$')" -ge 1
check "what does not fit has none" "$(echo "$budgets" | grep -c '^1')" = 0
