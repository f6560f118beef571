# JACK and two clients of a user who may take real-time priorities, as group audio may, beside eight hogs: the same threads have the same
# priorities with onbeat as without it, and there are no more xruns.
# needs: onbeat jackd jack_wait jack_simple_client prlimit setpriv /usr/lib/x86_64-linux-gnu/jack:/usr/lib/x86_64-linux-gnu/jack
# long: yes
chmod 755 /
chmod 1777 /tmp
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
chmod 1777 /dev/shm
for _ in 1 2 3 4 5 6 7 8; do sh -c 'while :; do :; done' & done

# Its argument is where it leaves what it saw.
cat >/tmp/studio <<'SH'
export HOME=/tmp JACK_NO_AUDIO_RESERVATION=1
jackd --realtime --realtime-priority 70 -d dummy -r 48000 -p 256 >$1.jackd 2>&1 &
jack_wait -w -t 20 >/tmp/wait 2>&1
jack_simple_client a >/tmp/a 2>&1 &
jack_simple_client b >/tmp/b 2>&1 &
sleep 4
cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null | awk '{ name = $2; sub(/.*\) /, "") } $39 == 1 && name ~ /jack/ { print name, $38 }' | sort >$1.first
grep -c XRun $1.jackd >$1.xruns
kill $(jobs -p) || true
wait
sleep 1
SH
user="prlimit --rtprio=95 --memlock=unlimited setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all"
$user sh /tmp/studio /tmp/without
onbeat run --quiet --children --log /results/log -- $user sh /tmp/studio /tmp/with

sed 's/^/by nothing, SCHED_FIFO: /' /tmp/without.first
sed 's/^/by onbeat, SCHED_FIFO: /' /tmp/with.first
echo "xruns: $(cat /tmp/without.xruns) by nothing, $(cat /tmp/with.xruns) by onbeat; raised $(grep -c '"what":"boosted"' /results/log) times"
check "the server and both clients have their priorities" "$(wc -l </tmp/without.first)" -ge 3
check "the same with onbeat" "$(cat /tmp/with.first)" = "$(cat /tmp/without.first)"
check "no more xruns" "$(cat /tmp/with.xruns)" -le "$(cat /tmp/without.xruns)"
