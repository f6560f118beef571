# A thread that says under GRACE-OS that it is soft real-time no longer, and computes on: the next one that is has a plan of its own jobs.
# needs: onbeat onbeat-lab cycles.c talker.c
# long: yes
# cpufreq: 1000 500
load_cpufreq
cat >/tmp/both.sh <<'BOTH'
talker leaves 400 &
talker=$!
sleep 4
cycles 16 3000 230 /results/jobs 0 says
kill $talker
BOTH
onbeat-lab scheduler start grace --json -- sh -eu /tmp/both.sh >/results/told.jsonl 2>/results/messages
cat /results/messages
budget=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/messages | awk '{ print int($1 * 1000) }' | greatest)
echo "jobs of 3000 us have a budget of ${budget:-no} us"
check "there is a plan for the program that came after it" "${budget:-0}" -gt 2900
check "its jobs alone make it" "$budget" -lt 4000
