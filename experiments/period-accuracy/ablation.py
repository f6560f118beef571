#!/usr/bin/env python3
"""Switches each mechanism of the analyser off, halves and doubles each of its numbers, one at a
time, and prints which windows of the development corpora and which made-up threads that changes.

Reads the names from crates/infer/src/tuning.rs, and builds the `score` example with the feature
`ablation`. Usage: experiments/period-accuracy/ablation.py [NAME...]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FOLDERS = ["tests/traces", "tests/traces/strangers", "tests/traces/corpus/development"]
KINDS = ["periodic", "aperiodic", "LiME", "made up"]


def constants():
    """The names with their types and values, mechanisms last."""
    text = (ROOT / "crates/infer/src/tuning.rs").read_text()
    found = re.findall(r"^    (\w+): (f64|usize|u32|u64|bool) = ([\w.]+);$", text, re.M)
    return [(name, kind, value.replace("_", "")) for name, kind, value in found]


def trials(kind, value):
    """The other values of a constant."""
    if kind == "bool":
        return ["false"]
    if kind == "f64":
        return [repr(float(value) / 2), repr(float(value) * 2)]
    return [str(int(value) // 2), str(int(value) * 2)]


def answers(trial):
    """Each window's kind and whether its answer is right; none if the trial fails."""
    run = subprocess.run(
        [TARGET / "release/examples/score", *FOLDERS, "--windows"],
        cwd=ROOT,
        env={**os.environ, "ONBEAT_TRIAL": trial},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        return None
    found = {}
    for line in run.stdout.splitlines():
        name, has_period, verdict, _, _ = line.split("\t")
        kind = "periodic" if has_period == "true" else "aperiodic"
        if name.startswith("made-up"):
            kind = "made up"
        elif ".csv" in name:
            kind = "LiME"
        found[name] = (kind, verdict == "Right")
    return found


def changes(before, after):
    """For each kind, how many answers became right and how many no longer are."""
    cells = []
    for kind in KINDS:
        names = [name for name in before if before[name][0] == kind]
        better = sum(after[name][1] and not before[name][1] for name in names)
        worse = sum(before[name][1] and not after[name][1] for name in names)
        cells.append(f"+{better} -{worse}" if better or worse else "")
    return cells


def main():
    build = "cargo build --release -q -p onbeat-infer --features ablation --example score"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    before = answers("")
    print("| constant | value | tried |", " | ".join(KINDS), "|")
    print("|---|---|---|" + "---|" * len(KINDS))
    for name, kind, value in constants():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        for tried in trials(kind, value):
            after = answers(f"{name}={tried}")
            cells = changes(before, after) if after else ["fails"] + [""] * (len(KINDS) - 1)
            print(f"| {name} | {value} | {tried} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
