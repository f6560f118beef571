# In a control group of version 2, cpu.max throttles a periodic program. With a reservation, which a rule of the service for
# the container or the group gives it, it is not throttled.
# needs: onbeat periodic.c
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
path=/system.slice/docker-$id.scope
group=/sys/fs/cgroup$path
mkdir -p "$group"
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
echo +cpu >/sys/fs/cgroup/system.slice/cgroup.subtree_control
# 5 ms of each 100, for a program that takes some 3 ms in each 20.
echo 5000 100000 >"$group/cpu.max"

throttled() {
    sed -n 's/^nr_throttled //p' "$group/cpu.stat"
}
# beat SECONDS LOG: the program in the group.
beat() {
    sh -c 'echo $$ >"$0/cgroup.procs"; exec periodic 20000 1000 "$1" "$2"' "$group" "$1" "$2"
}
# in_time LOG FROM_S: of a hundred jobs that were released after that time, how many have ended within their period.
in_time() {
    awk -v from="$2" '$1 >= from * 1000000 { all++; if ($3 >= 0 && $3 - $1 <= 20000) timely++ }
        END { printf "%d", all ? 100 * timely / all : 0 }' "$1"
}
is_kept() {
    beats=$(pidof periodic) && test -n "$(reserved_threads "$beats")"
}

beat 3 /results/alone
echo "without a reservation: $(in_time /results/alone 1)% in time, throttled $(throttled) times, a job takes" \
    "$(awk '$4 > most { most = $4 } END { print most }' /results/alone) us"
check "the group is throttled in most of its periods" "$(throttled)" -ge 15
check "most jobs are late or left out" "$(in_time /results/alone 1)" -le 50

kept() { # NAME RULE
    printf 'always = true\nscan = "100ms"\n[[rule]]\nname = "%s"\n%s\n' "$1" "$2" >/tmp/onbeat.toml
    onbeat daemon --no-bus --config /tmp/onbeat.toml --state-dir /run/onbeat 2>"/results/$1.journal" &
    service=$!
    # While it is throttled its period shows late, after some 4 s.
    beat 12 "/results/$1" &
    program=$!
    wait_until "the rule $1 gives the program a reservation" 20 is_kept
    # What it had used before counts until its period ends.
    sleep 1
    before=$(throttled)
    sleep 2
    check "it is still kept" "$(is_kept && echo yes)" = yes
    echo "$1: throttled $(($(throttled) - before)) times in 2 s"
    check "$1: the group is not throttled" "$(throttled)" = "$before"
    wait $program
    echo "$1: $(in_time "/results/$1" 6)% in time"
    check "$1: nearly every job is in time" "$(in_time "/results/$1" 6)" -ge 98
    kill $service
    wait $service
}
kept container "container = \"${id%"${id#????????????}"}\""
kept group "cgroup = \"/system.slice\""
