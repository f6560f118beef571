# A program that has a child compute for 20 ms, and then the next one, gets no more than its share: the one beside it that computes
# without a pause keeps near a half.
# needs: onbeat
burn() {
    left=$1
    while [ "$left" -gt 0 ]; do
        left=$((left - 1))
    done
}

now_us() {
    awk '{ printf "%.0f", $1 * 1000000 }' /proc/uptime
}

# How many rounds take 20 ms; the machine is idle.
began=$(now_us)
burn 300000
rounds=$((300000 * 20000 / ($(now_us) - began)))

onbeat scheduler start linux24 --quiet 2>/tmp/messages &
scheduler=$!
wait_until "linux24 is in force" 30 in_force linux24
start_hogs 1
hog=${hogs# }
(
    while :; do
        (burn "$rounds")
        echo >>/tmp/children
    done
) &
chain=$!
sleep 1
before=$(has_run "$hog")
children=$(wc -l </tmp/children)
began=$(now_us)
sleep 6
hog_percent=$((($(has_run "$hog") - before) / 10 / ($(now_us) - began)))
children=$(($(wc -l </tmp/children) - children))
kill "$chain"
end_hogs
check "the hog had two fifths of the CPU at least" "$hog_percent" -ge 40
check "the children were served, too" "$children" -ge 90
stops linux24 "$scheduler" /tmp/messages
