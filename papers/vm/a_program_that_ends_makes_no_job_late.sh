# Under each scheduler, a program that takes 0.1 s and more to end does so in turns with others, as while it ran: no job of a periodic one waits for
# that.
# needs: onbeat-lab periodic.c mapper.c
# long: yes
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
for name in linux24 best berate reserve grace; do
    rm -f /tmp/jobs
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 60 in_force "$name"
    mapper 3 50000 &
    ends=$!
    periodic 40000 $((5 * rounds_in_1ms)) 3 /tmp/jobs &
    periodic=$!
    wait "$ends" "$periodic"
    late=$(awk '$3 < 0 || $3 - $1 > 40000 { late++ } END { print late + 0 }' /tmp/jobs)
    worst=$(awk '{ print int(($3 - $1) / 1000) }' /tmp/jobs | greatest)
    echo "$name: of $(wc -l </tmp/jobs) jobs of 5 ms every 40 ms $late were late, the longest took $worst ms"
    check "$name: there were jobs" "$(wc -l </tmp/jobs)" -ge 70
    check "$name: one job was late at most" "$late" -le 1
    stops "$name" "$scheduler" /tmp/messages
done
