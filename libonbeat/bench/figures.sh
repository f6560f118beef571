#!/bin/sh
# How late a violation is notified and what a block costs, beside what they ought to be.
# usage: figures.sh BENCH_SAMPLES [SECONDS]    the program, and how long each row is measured (5)
samples=${1:?usage: figures.sh BENCH_SAMPLES [SECONDS]}
seconds=${2:-5}

row() { # WHAT KIND POLICY GOAL_P50_NS GOAL_P99_NS: a goal of 0 is none
    "$samples" "$2" "$3" "$seconds" 500 | sort -n -k 2 | awk -v what="$1" -v policy="$3" -v p50="$4" -v p99="$5" '
        function figure(ns, goal) {
            return sprintf("%.3f%s", ns / 1e3, goal == 0 ? "" : sprintf(" (< %.1f%s)", goal / 1e3, ns < goal ? "" : " MISSED"))
        }
        { ns[NR] = $2 }
        END {
            if (NR) printf "| %s | %s | %s | %s | %s |\n", what, policy, figure(ns[int((NR + 1) / 2)], p50),
                figure(ns[int((NR * 99 + 99) / 100)], p99), figure(ns[NR], 0)
        }'
}

printf 'microseconds:\n\n| what | policy | p50 | p99 | max |\n|---|---|--:|--:|--:|\n'
row 'deadline notification' deadline other 20000 60000
row 'deadline notification' deadline fifo 20000 60000
row 'execution-time notification' wcet other 50000 300000
row 'execution-time notification' wcet fifo 0 0
row 'the same, by the CPU-time timer' wcet-by-timer other 0 0
row 'enter and leave a block' block other 1500 0
row 'enter and leave, nested, not earliest' nested other 300 0
# The third row of the paper's Table 1: four that compute and one that writes memory.
stress-ng --quiet --cpu 4 --vm 1 --vm-bytes 64M &
load=$!
trap 'kill "$load"' EXIT
row 'deadline notification, loaded' deadline other 0 0
row 'deadline notification, loaded' deadline fifo 0 0
row 'deadline notification, loaded' deadline deadline 0 100000
row 'execution-time notification, loaded' wcet deadline 0 0
