# A notification changes what a scheduler knows of the thread before it sleeps again; a killed scheduler is gone at once.
# needs: onbeat onbeat-lab notifier.c
# known FROM_NS TO_NS WHAT: what the rules kept of the thread in that time, at each look.
known() {
    sed -n 's/.*"at_ns":\([0-9]*\),.*"comm":"notifier","knows":{\([^}]*\)}.*/\1 \2/p' /results/turns |
        awk -v from="$1" -v to="$2" '$1 >= from && $1 <= to' | sed "s/.*\"$3\":\([0-9]*\).*/\1/"
}

for name in linux24 best berate; do
    onbeat-lab scheduler start "$name" --json --interval 50ms -- sh -c 'notifier >/tmp/told' >/results/turns
    read -r told_ns end_ns asleep </tmp/told
    check "under $name the thread did not sleep after it had told" "$asleep" = 0
    case "$name" in
    best) worth=notified ;;
    *) worth=boost.extra ;;
    esac
    known 0 "$told_ns" "$worth" >/tmp/before
    known "$told_ns" "$end_ns" "$worth" >/tmp/after
    check "it was looked at before it told" "$(wc -l </tmp/before)" -gt 10
    check "nothing was granted then" "$(sort -n /tmp/before | tail -n 1)" = 0
    check "it was looked at after it had told, while it computed on" "$(wc -l </tmp/after)" -gt 3
    check "it was granted something from the first look on" "$(head -n 1 /tmp/after)" -gt 0
    check "one notification was counted" "$(tail -n 1 /results/turns | sed 's/.*"notifications":\([0-9]*\).*/\1/')" = 1
    check "nothing is left under SCHED_EXT" "$(onbeat-lab scheduler status --json | sed 's/.*"chosen":\([0-9]*\).*/\1/')" = 0
done

onbeat-lab scheduler start linux24 --quiet &
scheduler=$!
wait_until "it is in force" 20 in_force linux24
check "it schedules all" "$(onbeat-lab scheduler status)" = "linux24 schedules all ordinary tasks"
onbeat-lab scheduler start best 2>/tmp/refused && check "a second one" was = refused
check "a second one is refused, and the first is named" "$(grep -c 'linux24 is loaded already' /tmp/refused)" = 1
kill -9 "$scheduler"
wait_until "the kernel is back at its own" 5 in_force none
