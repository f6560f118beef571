#!/bin/bash
# Run by sandbox.sh: starts the service by its unit, and looks at what it may do and does.
set -eu
# The unit hides /run/user.
export XDG_RUNTIME_DIR=/run/manager SYSTEMD_LOG_TARGET=console
unit=onbeat.service
fail() {
    systemctl --user status --no-pager --lines=0 "$unit" || true
    tail -n 20 /tmp/manager "$XDG_RUNTIME_DIR/said"
    echo "$*"
    exit 1
}
eventually() {
    local try
    for try in $(seq 300); do
        "$@" && return 0
        sleep 0.1
    done
    echo "tried $try times: $*"
    return 1
}

# What the first process would have made: the sign that systemd is there, and what it puts in the place of devices.
hidden=/run/systemd/inaccessible
mkdir -p /run/systemd/system /run/dbus "$hidden/dir"
install -d -m 700 "$XDG_RUNTIME_DIR"
touch "$hidden/reg"
mkfifo "$hidden/fifo"
mknod "$hidden/chr" c 0 0
mknod "$hidden/blk" b 0 0
perl -MSocket -e "socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un('$hidden/sock')) or die"
chmod 000 "$hidden"/*
dbus-daemon --system --fork

# The unit as it is installed; only the folder for its state, and its messages, are elsewhere.
mkdir -p "/etc/systemd/user/$unit.d"
find /lib/systemd/system /usr/lib/systemd/system -name 'onbeat*.service' -exec cp {} /etc/systemd/user \;
mkdir -p /etc/systemd/user/onbeat-guard.service.d
printf '[Service]\nEnvironment=ONBEAT_STATE_DIR=%s/onbeat\nStandardError=append:%s/said\n' "$XDG_RUNTIME_DIR" "$XDG_RUNTIME_DIR" \
    >"/etc/systemd/user/$unit.d/state.conf"
cp "/etc/systemd/user/$unit.d/state.conf" /etc/systemd/user/onbeat-guard.service.d
printf 'scan = "100ms"\n[[rule]]\nprogram = "%s"\n' "$(realpath /usr/bin/perl)" >/etc/onbeat/onbeat.d/test.toml

/lib/systemd/systemd --user >/tmp/manager 2>&1 &
eventually test -e "$XDG_RUNTIME_DIR/systemd/private" || fail 'the manager does not start'
systemctl --user start "$unit" || fail 'the unit does not start'
service=$(systemctl --user show --property=MainPID --value "$unit")
has() { grep -qE "^$1:[[:space:]]+$2\$" "/proc/$service/status" || fail "not with $1 $2: $(grep "^$1" "/proc/$service/status")"; }
has Seccomp 2
has NoNewPrivs 1
# SYS_NICE, PERFMON and BPF.
has CapBnd 000000c000800000
# The manager may not have the controllers to enforce these; that it knows them is the unit's part.
knows() {
    local known
    known=$(systemctl --user show --property="$1" --value "$unit")
    [ "$known" = "$2" ] || fail "$1 is $known, not $2"
}
knows MemoryMax 268435456
knows TasksMax 32
knows WatchdogUSec 10s
group=/sys/fs/cgroup$(cut -d : -f 3 "/proc/$service/cgroup" | tail -n 1)
for limit in memory.max=268435456 pids.max=32; do
    [ ! -e "$group/${limit%=*}" ] || [ "$(cat "$group/${limit%=*}")" = "${limit#*=}" ] ||
        fail "${limit%=*} is $(cat "$group/${limit%=*}")"
    [ -e "$group/${limit%=*}" ] || echo "no ${limit%=*} in $group: this machine keeps that controller for cgroup v1"
done

# 1 ms or so in each 20.
# shellcheck disable=SC2016 # it is perl's
beat='while (1) { select(undef, undef, undef, 0.02); for (my $i = 0; $i < 20000; $i++) {} }'
setpriv --reuid=alice --regid=alice --init-groups perl -e "$beat" &
program=$!
is_reserved() { chrt -p "$program" | grep SCHED_DEADLINE >/dev/null; }
eventually is_reserved || fail 'a program with a rhythm gets no reservation'
# A client of RealtimeKit asks once: it keeps what it has until the service is stopped for good.
sleep 1000 &
client=$!
nice_level() { cut -d ' ' -f 19 "/proc/$client/stat"; }
busctl call -- org.freedesktop.RealtimeKit1 /org/freedesktop/RealtimeKit1 org.freedesktop.RealtimeKit1 \
    MakeThreadHighPriorityWithPID tti "$client" "$client" -5 || fail 'a client gets no priority'
systemctl --user restart "$unit" || fail 'it does not restart'
[ "$(nice_level)" = -5 ] || fail 'a restart takes the priority of a client'
before=$(systemctl --user show --property=MainPID --value "$unit")
kill -KILL "$before"
restarted() {
    local now
    now=$(systemctl --user show --property=MainPID --value "$unit")
    [ "$now" != 0 ] && [ "$now" != "$before" ] && systemctl --user --quiet is-active "$unit"
}
eventually restarted || fail 'it is not started again after a crash'
[ "$(nice_level)" = -5 ] || fail 'a crash takes the priority of a client'
eventually is_reserved || fail 'a program with a rhythm gets no reservation after a crash'
# One that stands still is ended by the watchdog, and started again.
before=$(systemctl --user show --property=MainPID --value "$unit")
kill -STOP "$before"
eventually restarted || fail 'it is not started again after it stood still'
[ "$(systemctl --user show --property=NRestarts --value "$unit")" -ge 2 ] || fail 'systemd did not start it again'
eventually is_reserved || fail 'a program with a rhythm gets no reservation after it stood still'
systemctl --user stop "$unit" || fail 'it does not stop'
! is_reserved || fail 'it does not give back what it held'
is_back() { [ "$(nice_level)" = 0 ]; }
eventually is_back || fail 'a client keeps its priority after the service was stopped for good'
kill "$program" "$client"
echo 'programs were tracked, kept what they had across a restart and a crash, and given back'
