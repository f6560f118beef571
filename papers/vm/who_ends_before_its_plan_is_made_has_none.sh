# Programs that say under GRACE-OS that they are soft real-time, and end before anybody has made a plan: however many there were, a later
# one has its plan. And who is not there is refused one.
# needs: onbeat onbeat-lab cycles.c talker.c
# long: yes
# cpufreq: 1000 500
load_cpufreq
status=0
timeout 120 onbeat-lab scheduler start grace --plan 4000000=16ms >/results/told 2>/results/refused || status=$?
cat /results/refused
check "who is not there is refused a plan" "$status" = 1
check "by its number" -n "$(grep 'thread 4000000: it has ended' /results/refused)"

cat >/tmp/both.sh <<'BOTH'
for _ in $(seq 80); do
    talker ends &
    # So that each has a CPU when it comes to speak, and is gone at once.
    usleep 20000
done
wait
cycles 16 3000 260 /results/jobs 0 says
BOTH
onbeat-lab scheduler start grace --json -- sh -eu /tmp/both.sh >/results/told.jsonl 2>/results/messages
cat /results/messages
check "there was room for everybody" -z "$(grep 'can be no more' /results/messages)"
check "each hundred of the 260 jobs made a plan" "$(grep -c 'of work every 16 ms' /results/messages)" -ge 2
