#!/usr/bin/env bash
# The same ten tasks under EDF by `onbeat sim` and by SimSo (PyPI): jobs per second of CPU time, and the ratio.
#
# SimSo goes into a virtual environment of its own, in the folder for results. The best of five runs each, in CPU
# time, so that other work on the machine matters little.
#
# usage: experiments/simulation-speed/measure.sh [ONBEAT]
set -euo pipefail
cd "$(dirname "$0")/../.."
onbeat=${1:-${CARGO_TARGET_DIR:-target}/release/onbeat}
out=experiments/out/simulation-speed
python=$out/venv/bin/python
mkdir -p "$out"
if [ ! -x "$python" ]; then
    python3 -m venv "$out/venv"
fi
"$python" -c 'import simso' 2>/dev/null || "$out/venv/bin/pip" install --quiet simso==0.8.5

# tasks SECONDS: ten tasks of 7% each, in servers of 9%.
tasks() {
    echo "duration = \"$1s\""
    for task in 0 1 2 3 4 5 6 7 8 9; do
        period=$((5000 + 997 * task))
        cat <<TOML
[[task]]
name = "t$task"
arrival = { periodic = "${period}us" }
demand = { constant = "$((period * 70))ns" }
scheduling = { deadline = { runtime = "$((period * 90))ns", period = "${period}us" } }
TOML
    done
}
tasks 10 >"$out/short.toml"
tasks 1000 >"$out/long.toml"

best() {
    for _ in 1 2 3 4 5; do "$@"; done | sort -n | head -n 1
}
seconds_of_onbeat() {
    local TIMEFORMAT='%U %S'
    { time "$onbeat" sim -q "$out/long.toml" >"$out/table"; } 2>&1 | awk '{ print $1 + $2 }'
}
seconds_of_simso() {
    "$python" experiments/simulation-speed/simso_tasks.py 10 "$out/simso_jobs"
}
jobs_of() {
    "$onbeat" sim -q --json "$1" | sed 's/.*"jobs":\([0-9]*\),"switches".*/\1/'
}

ours=$(best seconds_of_onbeat)
theirs=$(best seconds_of_simso)
short_jobs=$(jobs_of "$out/short.toml")
long_jobs=$(jobs_of "$out/long.toml")
simso_jobs=$(cat "$out/simso_jobs")
if [ "$short_jobs" != "$simso_jobs" ]; then
    echo "not the same work: $short_jobs jobs here and $simso_jobs in SimSo in 10 s" >&2
    exit 1
fi
awk -v ours="$ours" -v theirs="$theirs" -v long="$long_jobs" -v short="$simso_jobs" 'BEGIN {
    printf "| simulator | jobs | CPU time | jobs a second |\n|---|---:|---:|---:|\n"
    printf "| SimSo 0.8.5 | %d | %.2f s | %d |\n", short, theirs, short / theirs
    printf "| onbeat sim | %d | %.2f s | %d |\n", long, ours, long / ours
    printf "\n%.0f times as fast\n", (long / ours) / (short / theirs)
}'
