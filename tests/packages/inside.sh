#!/bin/bash
# In a fresh Debian that has booted: installs the packages in /root/packages, uses what they bring, and purges them.
# Nothing may fail on the way, and nothing stay behind. Prints what it does; the last line that it prints where
# something is wrong says what.
set -eu
export DEBIAN_FRONTEND=noninteractive

step() { echo "-- $*"; }
fail() {
    echo "$*"
    journalctl --unit=onbeat --no-pager --lines=12 --quiet || true
    exit 1
}

# Paths, and what is in the files of /etc. Caches and logs, and the notes of the package manager, are no part of it.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /root \
        -o -path /var/tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \
        -o -path /var/lib/systemd -o -path /etc/ld.so.cache \) -prune -o -print | sort
    find /etc -xdev -type f ! -name ld.so.cache -exec sha256sum {} + | sort -k 2
    find /var/lib/systemd/deb-systemd-helper-enabled /var/lib/systemd/deb-systemd-user-helper-enabled 2>/dev/null |
        grep onbeat || true
}

as_alice() { setpriv --reuid=alice --regid=alice --init-groups "$@"; }
manager=(org.onbeat.Manager1 /org/onbeat/Manager1 org.onbeat.Manager1)
# What a bus without the service answers is no answer, and what is being started takes a while.
eventually() {
    local try
    for try in $(seq 150); do
        "$@" >/tmp/said 2>&1 && return 0
        sleep 0.2
    done
    echo "tried $try times: $(cat /tmp/said)"
    return 1
}

step 'what they depend on'
apt-get install --simulate --no-install-recommends /root/packages/*.deb |
    sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -v onbeat >/tmp/said
# shellcheck disable=SC2046 # names of packages hold no spaces
apt-get install -y -qq --no-install-recommends $(cat /tmp/said) >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'what they depend on cannot be installed'
}
files >/tmp/before

step 'install'
apt-get install -y -qq --no-install-recommends /root/packages/*.deb >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'they cannot be installed'
}
# A fresh Debian says "dpkg-preconfigure: unable to re-open stdin" and the like; a script that fails says more.
! grep -iE 'onbeat.*(error|fail)' /tmp/apt || fail 'the installation complains'
dpkg --audit | grep . && fail 'dpkg finds something wrong'
dpkg --verify onbeat onbeat-node libonbeat0 libonbeat-dev python3-onbeat | grep . && fail 'files differ from the package'

step 'the service runs, and is started with the machine'
eventually systemctl --quiet is-active onbeat || fail 'it does not run'
[ "$(systemctl is-enabled onbeat)" = enabled ] || fail 'it is not started with the machine'
[ ! -e /etc/systemd/system/rtkit-daemon.service ] || fail 'it stands in for RealtimeKit without being asked'
grep -q 'systemctl disable --now onbeat' /tmp/apt || fail 'the installation does not say that the service runs'
systemctl disable --now onbeat >/dev/null 2>&1
busctl call org.onbeat.Manager1 /org/onbeat/Manager1 org.onbeat.Manager1 List >/dev/null 2>&1 && fail 'the bus starts it where it is disabled'
systemctl enable onbeat >/dev/null 2>&1
busctl call org.onbeat.Manager1 /org/onbeat/Manager1 org.onbeat.Manager1 List >/dev/null 2>&1 || fail 'the bus does not start it'
[ "$(systemctl show --property=Type --value onbeat)" = notify ] || fail 'it does not say when it is ready'
# There are no manual pages in a fresh Debian.
systemd-analyze verify onbeat.service 2>&1 | grep onbeat | grep -v "'man " && fail 'systemd finds something wrong with its unit'
onbeat daemon --check || fail 'its configuration is wrong'
[ -e /usr/share/onbeat/rules.d/players.toml ] || fail 'the rules for well-known programs are missing'

step 'onbeat-node waits for a container runtime'
eventually systemctl --quiet is-active onbeat-node || fail 'onbeat-node does not run'
eventually sh -c 'journalctl --unit=onbeat-node | grep "trying again"' || fail 'it does not say what it waits for'

step 'ordinary users are served'
as_alice busctl call "${manager[@]}" GetStatistics >/tmp/said || fail 'alice gets no answer'
grep -q bandwidth /tmp/said || fail "no quota in the statistics: $(cat /tmp/said)"
# setpriv becomes busctl, which asks for itself.
# shellcheck disable=SC2016 # the shell that alice runs fills in its own number
reserve='exec busctl call org.onbeat.Manager1 /org/onbeat/Manager1 org.onbeat.Manager1 Reserve uttt $$ 1000000 10000000 10000000'
as_alice sh -c "$reserve" || fail 'alice gets no reservation for herself'
if as_alice busctl call "${manager[@]}" Reserve uttt 1 1000000 10000000 10000000 2>/tmp/said; then
    fail 'alice gets a reservation for the first process'
fi
grep -q 'or an administrator' /tmp/said || fail "what is not permitted is not called so: $(cat /tmp/said)"
as_alice busctl get-property org.freedesktop.RealtimeKit1 /org/freedesktop/RealtimeKit1 \
    org.freedesktop.RealtimeKit1 MaxRealtimePriority | grep -q 'i 20' || fail 'clients of RealtimeKit are not served'

step 'a changed configuration stays when the packages are installed anew, and the service runs on'
echo '# by hand' >>/etc/onbeat/onbeat.toml
before=$(systemctl show --property=MainPID --value onbeat)
dpkg -i /root/packages/onbeat_*.deb >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'it cannot be installed anew'
}
grep -q 'by hand' /etc/onbeat/onbeat.toml || fail 'the configuration was overwritten'
eventually systemctl --quiet is-active onbeat || fail 'it does not run any more'
[ "$(systemctl show --property=MainPID --value onbeat)" != "$before" ] || fail 'the old program runs on'

step 'its configuration is read anew'
before=$(systemctl show --property=MainPID --value onbeat)
echo 'scan = "never"' >/etc/onbeat/onbeat.d/wrong.toml
if systemctl reload onbeat; then fail 'a reload with a mistake in the configuration succeeds'; fi
eventually sh -c 'journalctl --unit=onbeat | grep wrong.toml:1' || fail 'a mistake in it is not told'
rm /etc/onbeat/onbeat.d/wrong.toml
systemctl reload onbeat || fail 'it cannot be told to read its configuration'
[ "$(systemctl show --property=MainPID --value onbeat)" = "$before" ] || fail 'it did not outlive the mistake'

step 'metrics are told in its sandbox, as their document has it'
# Each block of the document that changes the unit, by its number.
drop_in() {
    mkdir -p /etc/systemd/system/onbeat.service.d
    zcat -f /usr/share/doc/onbeat/metrics.md* |
        awk -v wanted="$1" '/^\[Service\]/ { inside = ++block == wanted } /^```/ { inside = 0 } inside' \
            >/etc/systemd/system/onbeat.service.d/metrics.conf
    grep -q -- --metrics /etc/systemd/system/onbeat.service.d/metrics.conf || fail "the document has no block $1"
    systemctl daemon-reload
    systemctl restart onbeat || fail "it does not start with block $1 of the document"
}
metrics=/var/lib/prometheus/node-exporter
mkdir -p "$metrics"
drop_in 1
eventually grep -q '^onbeat_build_info' "$metrics/onbeat.prom" || fail 'the file is not written'
setpriv --reuid=alice --regid=alice --init-groups cat "$metrics/onbeat.prom" >/dev/null || fail 'who collects cannot read it'
drop_in 2
[ ! -e "$metrics/onbeat.prom" ] || fail 'the file outlives what it tells of'
# A fresh Debian has nothing else that fetches pages.
# shellcheck disable=SC2016 # bash makes these
page='exec 3<>/dev/tcp/127.0.0.1/9464 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && grep -q ^onbeat_build_info <&3'
eventually as_alice bash -c "$page" || fail 'nobody answers at the address'
rm -r /etc/systemd/system/onbeat.service.d /var/lib/prometheus
systemctl daemon-reload
systemctl restart onbeat || fail 'it does not start as before'

step 'the bus starts it when it is asked for'
systemctl stop onbeat
eventually as_alice busctl call "${manager[@]}" GetStatistics || fail 'it was not started'

step 'documents link to nothing that is not installed'
for document in /usr/share/doc/*onbeat*/*.md*; do
    if zcat -f "$document" | grep '](\(\.\./\|papers/\)'; then fail "$document has a dead link"; fi
done

step 'programs are built with the library'
for example in /usr/share/doc/libonbeat-dev/examples/*.c*; do
    case "$example" in *.gz) gunzip -c "$example" >/tmp/example.c ;; *) cp "$example" /tmp/example.c ;; esac
    # shellcheck disable=SC2046 # these are lists of flags
    gcc -std=gnu11 -o /tmp/example /tmp/example.c $(pkg-config --cflags --libs onbeat) || fail "$example cannot be built"
    # 77: it may not have a reservation here.
    status=0
    (cd /tmp && ./example) >/tmp/said 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || [ "$status" = 77 ] || fail "$example fails: $(cat /tmp/said)"
done
onbeat --version
onbeat doctor || true

step 'a Python program marks its jobs, and asks the service'
python3 -W error -c 'import onbeat
with onbeat.job():
    pass
onbeat.mdn()' || fail 'a Python program cannot mark its jobs'
[ "$(python3 -c 'import importlib.metadata as m; print(m.version("onbeat"))')" = "$(onbeat --version | cut -d " " -f 2)" ] ||
    fail 'the Python package has another version'
as_alice python3 -c 'import onbeat; assert onbeat.list() == []' ||
    fail 'a Python program gets no answer of the service'

step 'what a killed onbeat and guard left is put back when the package goes'
# shellcheck disable=SC2016 # the shell that it starts fills in its own number
onbeat reserve --runtime 1ms --period 20ms -- sh -c 'echo $$ >/tmp/reserved; exec sleep 1000' &
killed=$!
eventually test -s /tmp/reserved || fail 'onbeat starts no program'
reserved=$(cat /tmp/reserved)
is_reserved() { chrt -p "$reserved" | grep SCHED_DEADLINE >/dev/null; }
eventually is_reserved || fail 'it has no reservation'
guard=$(grep -lx onbeat-guard /proc/[0-9]*/comm | cut -d / -f 3)
kill -KILL "$guard" "$killed"
wait "$killed" 2>/dev/null || true
is_reserved || fail 'it lost its reservation with onbeat'
apt-get remove -y -qq onbeat >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'it cannot be removed'
}
! is_reserved || fail 'what it reserved is not put back'
kill "$reserved"
! systemctl --quiet is-active onbeat || fail 'the service runs without its package'
! systemctl --quiet is-active onbeat-node || fail 'onbeat-node runs without the service'
[ -e /etc/onbeat/onbeat.toml ] || fail 'the configuration went before it was purged'

step 'purge'
# As if an onbeat from elsewhere, of root's own, were at work.
install -D -m 600 /dev/null /run/onbeat/another.jsonl
apt-get purge -y -qq onbeat onbeat-node libonbeat0 libonbeat-dev python3-onbeat >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'they cannot be purged'
}
! grep -i 'warning' /tmp/apt || fail 'the purge complains'
files >/tmp/after
diff /tmp/before /tmp/after >/tmp/said || fail "not as before: $(head -n 20 /tmp/said)"
[ "$(echo /run/onbeat/*)" = /run/onbeat/another.jsonl ] || fail "not what another onbeat has noted: $(echo /run/onbeat/*)"
! systemctl --no-legend --failed | grep onbeat || fail 'a failed unit stayed'
echo 'nothing stayed behind'

step 'RealtimeKit keeps its clients, and an installation from source serves them where it is masked'
apt-get install -y -qq --no-install-recommends rtkit make >/tmp/apt 2>&1 || {
    cat /tmp/apt
    fail 'RealtimeKit and make cannot be installed'
}
dpkg-deb -x /root/packages/onbeat_*_*.deb /tmp/built
export ONBEAT=/tmp/built/usr/bin/onbeat
/root/source/scripts/install.sh >/tmp/said 2>&1 || fail "it cannot be installed: $(tail -n 5 /tmp/said)"
systemctl daemon-reload
systemctl enable --now onbeat || fail 'it cannot be enabled'
kit=org.freedesktop.RealtimeKit1
serves() {
    as_alice busctl get-property "$kit" /org/freedesktop/RealtimeKit1 "$kit" MaxRealtimePriority &&
        busctl --no-pager status "$kit" | grep -x "Comm=$1"
}
eventually serves rtkit-daemon || fail 'it takes the clients of RealtimeKit without being asked'
systemctl mask --now rtkit-daemon
systemctl restart onbeat
eventually serves onbeat || fail 'it does not stand in for RealtimeKit'
sleep 1000 &
client=$!
has_nice() { [ "$(cut -d ' ' -f 19 "/proc/$client/stat")" = "$1" ]; }
busctl call -- "$kit" /org/freedesktop/RealtimeKit1 "$kit" MakeThreadHighPriorityWithPID tti "$client" "$client" -5 ||
    fail 'a client gets no priority'
has_nice -5 || fail 'a client does not have its priority'
/root/source/scripts/install.sh --remove >/tmp/said 2>&1 || fail "it cannot be taken away: $(tail -n 5 /tmp/said)"
has_nice 0 || fail 'what a client had is not put back'
kill "$client"
! systemctl --quiet is-active onbeat || fail 'the service runs without its files'
[ ! -e /usr/local/bin/onbeat ] || fail 'the binary stayed'
systemctl unmask rtkit-daemon
eventually serves rtkit-daemon || fail 'RealtimeKit is not back'
echo 'RealtimeKit is back'
