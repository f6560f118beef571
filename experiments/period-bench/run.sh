#!/bin/sh
# The default analyser against the reference spectrum and against FINUFFT, in one run on one machine,
# as a Markdown table. Needs python3 with venv, and the network the first time (numpy, finufft).
set -eu
cd "$(dirname "$0")/../.."
out=experiments/out/period-bench
mkdir -p "$out"
[ -x "$out/venv/bin/python" ] || python3 -m venv "$out/venv"
"$out/venv/bin/python" -c 'import finufft' 2>/dev/null || "$out/venv/bin/pip" install -q numpy finufft
cargo bench -q -p onbeat-infer --bench period -- "$@" | tee "$out/criterion.txt" >&2
OMP_NUM_THREADS=1 "$out/venv/bin/python" experiments/period-bench/compare.py "$out/criterion.txt"
