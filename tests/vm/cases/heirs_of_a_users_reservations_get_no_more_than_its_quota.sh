# A user has a program compute on each CPU, and others wait for locks that these have, with reservations: one after the other, as fast as it can.
# The computing ones get no more above ordinary priority than the bound of SECURITY.md, and root's real-time threads are not held up for long.
# needs: onbeat dbus-daemon heirs.c
# cpus: 2
# time: virtual
# seconds: 3600
# long: yes
: "${seconds:=12}" "${percent:=50}"
echo 'alice:x:1000:1000::/:/bin/sh' >>/etc/passwd
echo 'alice:x:1000:' >>/etc/group
chmod 755 /
chmod 1777 /tmp
printf '[quota]\nbandwidth = "%s%%"\n' "$percent" >/tmp/onbeat.toml
start_service /tmp/onbeat.toml

# For each CPU: who computes, who looks whether root's threads run, and three that lend, each anew as soon as it has lost its reservation.
pids=
for cpu in 0 1; do
    heirs as 1000 heirs spin "$cpu" "$seconds" "/tmp/heir$cpu" &
    echo $! >"/tmp/number$cpu"
    pids="$pids $!"
    heirs gaps "$cpu" "$seconds" >"/tmp/gap$cpu" &
    pids="$pids $!"
    for _ in 1 2 3; do
        heirs as 1000 sh -c "while [ -d /proc/\$(cat /tmp/number$cpu) ]; do
            onbeat reserve --runtime 1ms --period 100ms -- heirs wait /tmp/number$cpu 100 || sleep 0.1
        done" >/dev/null 2>&1 &
        pids="$pids $!"
    done
done
wait $pids || true

cat /tmp/heir0 /tmp/heir1 >/results/heirs
# most TENTHS: the most of both heirs together in any so many tenths of a second, in us. A tenth in which one did not run has no line.
most() {
    awk -v of="$1" '
        FNR == 1 { heir++ }
        { at = $1 / 100; used[heir, at] = $2; if (!first || at < first) first = at; if (at > end) end = at }
        END {
            for (at = first; at <= end; at++) {
                for (h = 1; h <= heir; h++) if ((h, at) in used) so_far[h] = used[h, at]
                for (h = 1; h <= heir; h++) sum[at] += so_far[h]
                before = at - of < first ? 0 : sum[at - of]
                if (sum[at] - before > most) most = sum[at] - before
            }
            print most + 0
        }' /tmp/heir0 /tmp/heir1
}
# B(t) = q (t + 1 s) + c L, with L = 5 ms; a tenth is for what the measuring itself cannot tell.
for s in 1 10 60; do
    [ "$s" -lt "$seconds" ] || break
    used=$(most "${s}0")
    bound=$(awk -v q="$percent" -v s="$s" 'BEGIN { print int(1000000 * (q / 100 * (s + 1) + 2 * 0.005)) }')
    echo "in $s s: $used us of $bound"
    check "above ordinary priority in any $s s, in us, and the bound" "$used" -le $((bound * 11 / 10))
done
check "the heirs had something at all" "$(most 10)" -gt 0
for cpu in 0 1; do
    echo "root's real-time thread on CPU $cpu waited for $(cat /tmp/gap$cpu) us at most"
    check "root's real-time thread on CPU $cpu waited for less than the quota's 0.5 s and a tenth (us)" "$(cat /tmp/gap$cpu)" -lt 550000
done
check "the service has told of it" "$(grep -c 'is no longer served' /tmp/service)" -gt 0
end_service
