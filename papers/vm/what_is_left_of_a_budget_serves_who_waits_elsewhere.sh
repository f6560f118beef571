# Two reserved threads with the same releases, each on its CPU: who finds the budget taken by the other has what that leaves of it.
# needs: onbeat-lab periodic.c taskset
# long: yes
# cpus: 2
# time: virtual
#
# A quarter of a ms each, on 1 ms in every 20 ms: that is one portion, which the first takes whole.
periodic 40000 1000 1 /tmp/speed
rounds=$((250000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
cat >/tmp/both <<BOTH
taskset -c 0 periodic 20000 $rounds 4 /results/first 0 &
taskset -c 1 periodic 20000 $rounds 4 /results/second 0
wait
BOTH
onbeat-lab reserve --runtime 1ms --period 20ms -- sh -eu /tmp/both

for log in first second; do
    slow=$(awk 'NR > 20 && ($3 < 0 || $3 - $1 > 5000) { slow++ } END { print slow + 0 }' /results/$log)
    echo "$log: $(wc -l </results/$log) jobs, of which $slow took more than 5 ms; the CPU time of one is $(cut -d ' ' -f 4 /results/$log | middle) us"
    check "$log: there are jobs" "$(wc -l </results/$log)" -gt 150
    check "$log: they do not wait for another budget" "$slow" -le $(($(wc -l </results/$log) / 20))
done
