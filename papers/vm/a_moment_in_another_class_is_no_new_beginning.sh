# A program that computes all the time, and has a fixed priority for a moment every 10 ms, shares the CPU with one that does not.
# needs: onbeat-lab shifty.c
# long: yes
for name in linux24 best berate; do
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    start_hogs 1
    shifty &
    shifty=$!
    sleep 1
    read -r hog_before _ <"/proc/${hogs# }/schedstat"
    read -r shifty_before _ <"/proc/$shifty/schedstat"
    sleep 3
    read -r hog_after _ <"/proc/${hogs# }/schedstat"
    read -r shifty_after _ <"/proc/$shifty/schedstat"
    hog_ran=$((hog_after - hog_before))
    hog_percent=$((100 * hog_ran / (hog_ran + shifty_after - shifty_before)))
    end_hogs
    kill "$shifty"
    echo "under $name the hog had $hog_percent percent of what the two had"
    check "under $name the hog had between a third and two thirds" "$hog_percent" -ge 33
    check "under $name the other one had as much" "$hog_percent" -le 67
    stops "$name" "$scheduler" /tmp/messages
done
