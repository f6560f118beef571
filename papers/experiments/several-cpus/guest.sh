# Sets of periodic programs on all CPUs: reserved by hand, and by onbeat.
# needs: onbeat chrt periodic.c
# cpus: 2
# time: virtual
# seconds: 7200
#
# SETS: words NAME=PROGRAM,PROGRAM...; a PROGRAM is PERIOD_US:RUN_US:RESERVED_US; RUN_SECONDS: for how long each set runs in
# each way; ONBEAT: its options.
cpus=$(nproc)
others=$(seq 1 $((cpus - 1)))

# Each CPU is busy at all times, and has the same share of the instructions.
start_hog_on_each_cpu() {
    hogs=
    for cpu in 0 $others; do
        taskset -c "$cpu" periodic hog &
        hogs="$hogs $!"
    done
}

# ns_of_a_round CPU: measured at a priority that nothing interrupts.
ns_of_a_round() {
    chrt -f 50 taskset -c "$1" periodic 20000 500 2 /tmp/probe
    awk '{ print ($3 - $2) * 2 }' /tmp/probe | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

run() { # SET WAY PROGRAMS...
    folder=/results/$1/$2 way=$2
    mkdir -p "$folder"
    shift 2
    number=10 programs=''
    for program; do
        ln -sf /usr/bin/periodic "/tmp/p$number"
        (
            IFS=: read -r period_us run_us reserved_us <<END
$program
END
            set -- "/tmp/p$number" "$period_us" $((run_us * 1000 / ns_per_round)) "$RUN_SECONDS" "$folder/p$number"
            [ "$way" = onbeat ] || set -- chrt -d -T "${reserved_us}000" -P "${period_us}000" -D "${period_us}000" 0 "$@"
            exec "$@"
        ) 2>>"$folder/stderr" &
        programs="$programs $!"
        number=$((number + 1))
    done
    sleep 0.2
    onbeat=
    if [ "$way" = onbeat ]; then
        onbeat attach --always --quiet $ONBEAT --report "$folder/report.json" --log "$folder/log.jsonl" $programs \
            2>>"$folder/stderr" &
        onbeat=$!
    fi
    wait $programs || true
    if [ -n "$onbeat" ]; then
        kill -INT "$onbeat" 2>/dev/null || true
        wait "$onbeat" || true
    fi
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
    for way in by-hand onbeat; do
        run "${set%%=*}" "$way" $(echo "${set#*=}" | tr , ' ')
    done
done
kill $hogs
