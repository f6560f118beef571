# Jobs without budget under GRACE-OS, beside a hog: one that comes now and then begins at once, and who naps without end gains nothing by it.
# needs: onbeat-lab periodic.c
# long: yes
#
# A job of 2 ms every 17 ms, fewer than a hundred of them, so that it has no budget yet: neither period nor turns of 4 ms are a multiple of the
# other. Then one of 1 ms every 1.2 ms, whose budget is for ten seconds: it has used that up, and naps for 0.2 ms at least after each.
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))

# In ms.
ran() {
    echo $(($(has_run "$1") / 1000000))
}

# under_grace PERIOD FILE: what waits for the file has a plan of this period; in force when this returns.
under_grace() {
    program=$!
    onbeat-lab scheduler start grace --quiet --plan "$program=$1" 2>/tmp/messages &
    onbeat=$!
    wait_until "grace is in force" 60 in_force grace
    start_hogs 1
    : >"$2"
}

once_there /tmp/rare periodic 17000 $((2 * rounds_in_1ms)) 1 /results/rare &
under_grace 17ms /tmp/rare
wait "$program"
end_hogs
kill -INT "$onbeat"
wait "$onbeat"
late=$(awk '$3 < 0 || $3 - $1 > 4000 { late++ } END { print late + 0 }' /results/rare)
echo "$late of $(wc -l </results/rare) jobs of 2 ms took more than 4 ms"
check "there are jobs" "$(wc -l </results/rare)" -gt 50
check "they do not wait for a hog's turn" "$late" -le 3

# Three hogs with plans for ten seconds, of which they have no budget yet.
plans= planned=
for _ in 1 2 3; do
    periodic hog &
    planned="$planned $!"
    plans="$plans --plan $!=10s"
done
onbeat-lab scheduler start grace --quiet $plans 2>/tmp/messages &
onbeat=$!
wait_until "grace is in force" 60 in_force grace
start_hogs 1
# They never slept since: until then they are of those that have no plan.
kill -STOP $planned
sleep 0.5
kill -CONT $planned
sleep 1
of_the_hog=$(ran $hogs)
sleep 2
of_the_hog=$(($(ran $hogs) - of_the_hog))
kill $planned
wait $planned || true
end_hogs
kill -INT "$onbeat"
wait "$onbeat"
echo "beside three that have plans and no budget, the hog ran for $of_the_hog ms of 2000"
check "who has no plan has half at least, beside however many" "$of_the_hog" -ge 1000
check "and hardly more" "$of_the_hog" -le 1100

once_there /tmp/napping periodic 1200 "$rounds_in_1ms" 4 /results/napping &
under_grace 10s /tmp/napping
sleep 1
of_who_naps=$(ran "$program")
of_the_hog=$(ran $hogs)
sleep 2
of_who_naps=$(($(ran "$program") - of_who_naps))
of_the_hog=$(($(ran $hogs) - of_the_hog))
wait "$program"
end_hogs
kill -INT "$onbeat"
wait "$onbeat"
echo "who naps ran for $of_who_naps ms, the hog for $of_the_hog ms"
check "who naps has not much more than half" "$of_who_naps" -le $((of_the_hog * 5 / 4))
# It sleeps for a sixth of its turn, and up to a period after the hog's.
check "nor much less" "$of_who_naps" -ge $((of_the_hog * 3 / 4))
