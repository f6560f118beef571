# Two programs with the same releases, beside two hogs on two CPUs: both go before the hogs at once, not one of them.
# needs: onbeat onbeat-lab periodic.c
# cpus: 2
# time: virtual
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
hog="periodic 10000 1000000000 1 /dev/null"
cat >/tmp/chosen <<CHOSEN
$hog & $hog &
periodic 40000 $((4 * rounds_in_1ms)) 3 /tmp/other 0 &
other=\$!
periodic 40000 $((4 * rounds_in_1ms)) 3 /tmp/jobs 0
wait \$other
CHOSEN

for name in linux24 best berate; do
    rm -f /tmp/jobs /tmp/other
    onbeat-lab scheduler start "$name" --quiet -- sh -eu /tmp/chosen 2>/tmp/messages
    check "$name had nothing to say" ! -s /tmp/messages
    killall periodic
    for log in jobs other; do
        check "$name: there were 75 jobs" "$(wc -l </tmp/$log)" -ge 70
        late=$(awk 'NR > 10 && ($3 < 0 || $3 - $1 > 12000) { late++ } END { print late + 0 }' /tmp/$log)
        check "$name: at most one job of ten took longer than 12 ms" "$late" -le 6
    done
done
