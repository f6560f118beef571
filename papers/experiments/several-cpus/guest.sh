# Sets of periodic programs on all CPUs: reserved by hand under global EDF and partitioned, and by onbeat.
# needs: onbeat chrt periodic.c
# cpus: 2
# time: virtual
# seconds: 7200
#
# SETS: words NAME=PROGRAM,PROGRAM...; a PROGRAM is PERIOD_US:RUN_US:RESERVED_US:CPU, where CPU is its place when
# partitioned by hand, or none; RUN_SECONDS: for how long each set runs in each way; ONBEAT: its options.
cpuset=/sys/fs/cgroup
cpus=$(nproc)
others=$(seq 1 $((cpus - 1)))

# The hog of a CPU goes with it. So each CPU is busy at all times, and has the same share of the instructions.
start_hog_on_each_cpu() {
    hogs=
    for cpu in 0 $others; do
        taskset -c "$cpu" periodic hog &
        hogs="$hogs $!"
    done
}
hog_of() { # CPU
    echo "$hogs" | awk -v field=$(($1 + 1)) '{ print $field }'
}

# ns_of_a_round CPU: measured at a priority that nothing interrupts.
ns_of_a_round() {
    chrt -f 50 taskset -c "$1" periodic 20000 500 2 /tmp/probe
    awk '{ print ($3 - $2) * 2 }' /tmp/probe | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

partition_by_hand() {
    echo +cpuset >$cpuset/cgroup.subtree_control
    for cpu in $others; do
        mkdir "$cpuset/hand-cpu$cpu"
        echo "$cpu" >"$cpuset/hand-cpu$cpu/cpuset.cpus"
        echo root >"$cpuset/hand-cpu$cpu/cpuset.cpus.partition"
    done
}
end_partitions_by_hand() {
    for cpu in $others; do
        for process in $(cat "$cpuset/hand-cpu$cpu/cgroup.procs"); do
            echo "$process" >$cpuset/cgroup.procs
        done
        rmdir "$cpuset/hand-cpu$cpu"
    done
}
there_are_partitions() {
    [ "$(cat $cpuset/*-cpu[1-9]/cpuset.cpus.partition 2>/dev/null | grep -cx root)" = $((cpus - 1)) ]
}
hogs_follow() {
    wait_until 'each CPU is a partition' 30 there_are_partitions
    for cpu in $others; do
        for partition in "$cpuset/"*"-cpu$cpu"; do
            hog_of "$cpu" >"$partition/cgroup.procs"
        done
    done
}

become() { # WAY FOLDER NAME PERIOD_US RUN_US RESERVED_US CPU
    rounds=$(($5 * 1000 / ns_per_round))
    folder=$2 name=$3 period_us=$4 reserved_us=$6 cpu=$7
    case "$1" in
    hand-partitioned)
        [ "$cpu" != none ] || exit 0
        [ "$cpu" = 0 ] || echo 0 >"$cpuset/hand-cpu$cpu/cgroup.procs"
        ;;
    esac
    set -- "/tmp/$name" "$period_us" "$rounds" "$RUN_SECONDS" "$folder/$name"
    case "$folder" in
    */hand-*) exec chrt -d -T "${reserved_us}000" -P "${period_us}000" -D "${period_us}000" 0 "$@" ;;
    *) exec "$@" ;;
    esac
}

run() { # SET WAY PROGRAMS...
    folder=/results/$1/$2 way=$2
    mkdir -p "$folder"
    shift 2
    if [ "$way" = hand-partitioned ]; then
        partition_by_hand
        hogs_follow
    fi
    number=10 programs=''
    for program; do
        ln -sf /usr/bin/periodic "/tmp/p$number"
        (
            IFS=:
            set -- $program
            unset IFS
            become "$way" "$folder" "p$number" "$@"
        ) 2>>"$folder/stderr" &
        programs="$programs $!"
        number=$((number + 1))
    done
    sleep 0.2
    onbeat=
    if [ "$way" = onbeat-global ]; then
        onbeat attach --always --quiet $ONBEAT --report "$folder/report.json" --log "$folder/log.jsonl" $programs \
            2>>"$folder/stderr" &
        onbeat=$!
    fi
    wait $programs || true
    if [ -n "$onbeat" ]; then
        kill -INT "$onbeat" 2>/dev/null || true
        wait "$onbeat" || true
    fi
    [ "$way" != hand-partitioned ] || end_partitions_by_hand
    check "$folder: no partition is left" -z "$(find $cpuset -name '*-cpu[1-9]')"
}

start_hog_on_each_cpu
# The kernel has work left from its start, which is no round.
sleep 3
for cpu in 0 $others; do
    echo "$cpu $(ns_of_a_round "$cpu")"
done >/results/ns_of_a_round
cat /results/ns_of_a_round
ns_per_round=$(head -n 1 /results/ns_of_a_round | cut -d ' ' -f 2)
for set in $SETS; do
    for way in hand-global hand-partitioned onbeat-global; do
        run "${set%%=*}" "$way" $(echo "${set#*=}" | tr , ' ')
    done
done
kill $hogs
