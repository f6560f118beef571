# A process that may take a real-time priority by itself, by RLIMIT_RTPRIO, has a short slice beside a hog, and then takes its priority.
# It goes before the hog as root first, and keeps nothing of that when it drops root's rights. A thread that has taken none in two
# seconds goes first as others do.
# needs: onbeat chrt prlimit setpriv
# long: yes
chmod 755 /
chmod 1777 /tmp
cat >/tmp/beginning <<'SH'
sh -c 'while :; do :; done' &
echo $! >/tmp/hog
i=0
while [ $i -lt 3000 ]; do i=$((i + 1)); done
exec /usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all sh /tmp/player
SH
cat >/tmp/player <<'SH'
i=0
while [ $i -lt 3000 ]; do i=$((i + 1)); done
sed -n 's/^se.slice *: *//p' /proc/$$/sched >/tmp/slice
sh -c "sleep 0.1; sed -n 's/^se.slice *: *//p' /proc/\$\$/sched" >/tmp/slice-of-child
chrt --fifo -p 5 $$ 2>/tmp/refused
sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 39 >/tmp/policy
SH
cat >/tmp/older <<'SH'
sh -c 'while :; do :; done' &
sleep 3
i=0
while [ $i -lt 3000 ]; do i=$((i + 1)); done
sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 39 >/tmp/policy-of-older
kill $!
SH
onbeat run --quiet --log /results/log -- prlimit --rtprio=5 sh /tmp/beginning
kill "$(cat /tmp/hog)"
onbeat run --quiet -- prlimit --rtprio=5 setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all sh /tmp/older

check "it went first as root" -n "$(grep '"what":"boosted"' /results/log | head -n 1 | grep '"priority":1')"
check "by a slice" "$(cat /tmp/slice)" = 100001
check "which its child had, too" "$(cat /tmp/slice-of-child)" = 100001
check "it is not refused its priority" ! -s /tmp/refused
check "it is under SCHED_FIFO" "$(cat /tmp/policy)" = 1
check "later it goes first by SCHED_RR" "$(cat /tmp/policy-of-older)" = 2
