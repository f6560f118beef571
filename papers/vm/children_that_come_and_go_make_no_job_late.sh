# A periodic program keeps its deadlines beside four others that each have one child after the other compute for 20 ms, as a build does.
# needs: onbeat onbeat-lab periodic.c
# long: yes
periodic 40000 1000 1 /tmp/speed
rounds_in_1ms=$((1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
cat >/tmp/burn <<'BURN'
burn() {
    left=$1
    while [ "$left" -gt 0 ]; do
        left=$((left - 1))
    done
}
BURN
. /tmp/burn
now_us() {
    awk '{ printf "%.0f", $1 * 1000000 }' /proc/uptime
}

# How many rounds of that take 20 ms; the machine is idle.
began=$(now_us)
burn 300000
rounds=$((300000 * 20000 / ($(now_us) - began)))

for name in linux24 best berate; do
    rm -f /tmp/jobs
    cat >/tmp/chosen <<CHOSEN
. /tmp/burn
chains=
for chain in 1 2 3 4; do
    while :; do (burn $rounds); done &
    chains="\$chains \$!"
done
periodic 40000 $((5 * rounds_in_1ms)) 4 /tmp/jobs 0
kill \$chains
CHOSEN
    onbeat-lab scheduler start "$name" --quiet -- sh /tmp/chosen 2>/tmp/messages
    check "$name had nothing to say" ! -s /tmp/messages
    check "$name: there were a hundred jobs" "$(wc -l </tmp/jobs)" -ge 95
    # A scheduler has to learn first that the program sleeps.
    late=$(awk 'NR > 20 && ($3 < 0 || $3 - $1 > 40000) { late++ } END { print late + 0 }' /tmp/jobs)
    check "$name: one job in twenty was late at most" "$late" -le 4
done
