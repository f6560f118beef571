# A program that has a child compute for 20 ms, and then the next one, gets no more than its share: the one beside it that computes
# without a pause keeps near a half. Under BeRate, where who has just begun comes first, it keeps a tenth.
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

for name in linux24 berate; do
    onbeat scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    : >/tmp/children
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
    case "$name" in
    linux24) least=40 ;;
    # The child, who waits for it, the hog, and at times the child before are part of the load: two periods, for which the hog waits at most
    # after each quantum, are six to eight quanta.
    berate) least=10 ;;
    esac
    check "under $name the hog had its part of the CPU" "$hog_percent" -ge "$least"
    check "under $name the children were served, too" "$children" -ge 90
    stops "$name" "$scheduler" /tmp/messages
done
