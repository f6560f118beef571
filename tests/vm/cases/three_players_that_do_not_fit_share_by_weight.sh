# Three programs want more than --cap: the kernel has reservations for them by [weights], and none is below the minimum. The room of one
# that ends goes to the others by weight, and what one of these does not need to the other.
# needs: onbeat chrt periodic.c
#
# Each needs 30% of the CPU, and they begin without a hog, so that all show their periods. Under a cap of 60% and minima of 12% weights
# of 3 : 2 : 1 would leave the third 10%, so it has 12%, and the other 48% are shared 3 : 2. Once the first has ended, 60% are shared
# 2 : 1, of which the second does not need all.
chrt -f 50 periodic 20000 500 2 /tmp/probe
ns_per_round=$(awk '{ print ($3 - $2) * 2 }' /tmp/probe | middle)

player() { # NAME PERIOD_US
    ln -sf /usr/bin/periodic "/tmp/$1"
    "/tmp/$1" "$2" $(($2 * 300 / ns_per_round)) 60 "/results/$1" &
}
# permille PROCESS: what the kernel has reserved for it.
permille() {
    chrt -p "$1" | sed -n 's|.*parameters: \([0-9]*\)/[0-9]*/\([0-9]*\)$|\1 \2|p' |
        awk '{ all = int(1000 * $1 / $2 + 0.5) } END { print all + 0 }'
}
has_more_than() { # PROCESS PERMILLE
    [ "$(permille "$1")" -gt "$2" ]
}

# onbeat takes the reservation of one that waits all the same away for a moment, now and then, to compare.
all_have() { # PROCESS...
    for process; do
        has_more_than "$process" 0 || return 1
    done
}

player first 21000
first=$!
player second 33000
second=$!
player third 47000
third=$!
onbeat attach --always --quiet --cap 60% --config 'limits.minimum="12%"' --config weights.first=3 --config weights.second=2 --config weights.third=1 --log /results/log.jsonl \
    $first $second $third &
onbeat=$!
for player in $first $second $third; do
    wait_until "process $player has a reservation" 20 has_more_than "$player" 0
done
start_hogs 1
sleep 5
wait_until 'all have reservations' 5 all_have "$first" "$second" "$third"
a=$(permille $first) b=$(permille $second) c=$(permille $third)
echo "of the CPU, in permille: $a, $b, $c (by weight and minimum: 288, 192, 120)"
check 'together they have no more than the cap' $((a + b + c)) -le 600
check 'the third has its minimum' "$c" -ge 119
check 'and no more' "$c" -le 125
check 'the first has three times what the second has half of' $((2 * a)) -ge $((3 * b - 15))
check 'and no more' $((2 * a)) -le $((3 * b + 15))
check 'nothing of the cap is left' $((a + b + c)) -ge 590

kill $first
sleep 5
wait_until 'both have reservations' 5 all_have "$second" "$third"
b2=$(permille $second) c2=$(permille $third)
echo "without the first: $b2, $c2 (by weight: 400, 200, of which the second needs 330)"
check 'the second has more than before' "$b2" -gt "$b"
check 'the third has more than before' "$c2" -gt "$c"
check 'the second has more than the third' "$b2" -gt "$c2"
check 'together they have no more than the cap' $((b2 + c2)) -le 600
kill -INT $onbeat
wait $onbeat
check 'all is given back' -z "$(reserved_threads)"
kill $second $third
end_hogs
