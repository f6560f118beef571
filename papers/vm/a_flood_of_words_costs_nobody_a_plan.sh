# A program that says without end under GRACE-OS how soft its real time is: another one's jobs are heard all the same, and make its plan.
# needs: onbeat onbeat-lab cycles.c talker.c
# long: yes
# cpufreq: 1000 500
load_cpufreq
cat >/tmp/both.sh <<'BOTH'
talker floods &
talker=$!
sleep 2
cycles 16 3000 260 /results/jobs 0 says
kill $talker
BOTH
onbeat-lab scheduler start grace --json -- sh -eu /tmp/both.sh >/results/told.jsonl 2>/results/messages
grep 'every 16 ms' /results/messages || true
echo "$(wc -l </results/messages) lines were said in $(wc -l </results/told.jsonl) s"
check "each hundred of its 260 jobs made a plan" "$(grep -c 'of work every 16 ms' /results/messages)" -ge 2
budget=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' /results/messages | awk '{ print int($1 * 1000) }' | greatest)
check "they are of its work" "$budget" -gt 2900
check "and no more" "$budget" -lt 4000
