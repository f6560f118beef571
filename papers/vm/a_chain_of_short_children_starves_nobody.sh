# A program that has a child compute for 20 ms, and then the next one, gets no more than its share: the one beside it that computes
# without a pause keeps near a half, or more.
# needs: onbeat-lab
# long: yes
burn() {
    left=$1
    while [ "$left" -gt 0 ]; do
        left=$((left - 1))
    done
}

# Sets now_cs to the clock, in hundredths of a second, and ran_ns to what the process has executed. By no other
# process: one would have to wait for its turn.
look() { # PROCESS
    read -r now_cs _ </proc/uptime
    now_cs=${now_cs%.*}${now_cs#*.}
    read -r ran_ns _ <"/proc/$1/schedstat"
}

# How many rounds take 20 ms; the machine is idle.
look $$
began_cs=$now_cs
burn 300000
look $$
rounds=$((300000 * 2 / (now_cs - began_cs)))

for name in linux24 best berate; do
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    : >/tmp/children
    start_hogs 1
    hog=${hogs# }
    # Who is first of the two depends on the moment in which the chain begins: three chains, and the median of what the
    # hog had beside them.
    percents='' children=0
    for _ in first second third; do
        (
            while :; do
                (burn "$rounds")
                echo >>/tmp/children
            done
        ) &
        chain=$!
        sleep 1
        already=$(wc -l </tmp/children)
        look "$hog"
        before_ns=$ran_ns began_cs=$now_cs
        sleep 3
        look "$hog"
        percents="$percents $(((ran_ns - before_ns) / 100000 / (now_cs - began_cs)))"
        children=$((children + $(wc -l </tmp/children) - already))
        kill "$chain"
    done
    end_hogs
    hog_percent=$(printf '%s\n' $percents | sort -n | sed -n 2p)
    echo "under $name the hog had$percents percent"
    # Under the two a child is a stranger, and stands in line as the hog does: 20 ms for its 60.
    case "$name" in
    linux24) least=135 ;;
    *) least=67 ;;
    esac
    check "under $name the hog had two fifths of the CPU at least" "$hog_percent" -ge 40
    check "under $name the children were served, too" "$children" -ge "$least"
    stops "$name" "$scheduler" /tmp/messages
done
