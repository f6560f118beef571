# Under reserve: threads that may use the same CPU only share it, also where their budget never runs out.
# needs: onbeat-lab crew.c taskset
# cpus: 2
# time: virtual
# long: yes
#
# A whole CPU for two threads on one, and for three on one and the other: no turn of 4 ms ends by the budget.
onbeat-lab reserve --runtime 100ms --period 100ms -- taskset -c 0 crew 2 hog 2 /results/pinned
onbeat-lab reserve --runtime 180ms --period 100ms -- crew 3 hog 2 /results/free
for log in pinned free; do
    least=$(cut -d ' ' -f 4 /results/$log | sort -n | head -n 1)
    echo "$log: of 2 s the threads had $(cut -d ' ' -f 4 /results/$log | tr '\n' ' ')us"
    check "$log: each thread had its part" "$least" -ge 800000
done
