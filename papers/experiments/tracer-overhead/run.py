#!/usr/bin/env python3
"""What onbeat's BPF programs take at each switch and wakeup, as the kernel counts it, while a tracked program works and
while one sleeps.

Needs root, ffmpeg, bpftool, and onbeat's release binary."""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
# The hot ones; the others run once per thread or exec.
PROGRAMS = ["switched", "waking", "wakeup_new"]
# Works until it is ended.
TRANSCODE = (
    "ffmpeg -hide_banner -nostdin -f lavfi -i testsrc2=size=1280x720:rate=25 -c:v libx264 -preset medium -f null -"
)


def programs_of(pid):
    """The numbers of the BPF programs that a process keeps attached, as its links tell."""
    numbers = set()
    for link in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        numbers.update(int(n) for n in re.findall(r"^prog_id:\s*(\d+)", link.read_text(), re.M))
    return numbers


def counted(numbers):
    """Run time and invocations up to now, by program."""
    told = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, check=True)
    return {
        p["name"]: (p.get("run_time_ns", 0), p.get("run_cnt", 0))
        for p in json.loads(told.stdout)
        if p["id"] in numbers and p["name"] in PROGRAMS
    }


def windows_of(onbeat, recording, command, seconds):
    """What is counted each quarter second while onbeat traces `command`, and for how long that was."""
    traced = ["setpriv", "--pdeathsig", "TERM", onbeat, "record", "--quiet", "--tracer", "bpf", "-o", recording, "--"]
    process = subprocess.Popen(
        traced + command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(1)
        numbers = programs_of(process.pid)
        windows = [counted(numbers)]
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            time.sleep(0.25)
            windows.append(counted(numbers))
        return windows, time.monotonic() - began
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def rows(what, windows, lasted):
    for name in PROGRAMS:
        ns, runs = zip(*(window[name] for window in windows))
        each = [(after - before, r - s) for before, after, s, r in zip(ns, ns[1:], runs, runs[1:])]
        means = [spent / count for spent, count in each if count]
        if means:
            median, per_s = statistics.median(means), (runs[-1] - runs[0]) / lasted
            share = (ns[-1] - ns[0]) / lasted / 1e7
            yield f"| {what} | {name} | {median:.0f} | {per_s:.0f} | {share:.3f}% |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    parser.add_argument("--onbeat", default=f"{target}/release/onbeat", help="onbeat's binary")
    parser.add_argument("--seconds", type=int, default=6, help="for how long invocations are counted")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("tracing needs root: run it with sudo")
    for number in [signal.SIGTERM, signal.SIGHUP]:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    print("| while | BPF program | median ns | per second | of one CPU |\n|---|---|---:|---:|---:|")
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            commands = {"ffmpeg transcodes": TRANSCODE.split(), "a tracked task sleeps": ["sleep", "1000"]}
            for what, command in commands.items():
                windows, lasted = windows_of(options.onbeat, f"{scratch}/recording", command, options.seconds)
                print("\n".join(rows(what, windows, lasted)))
    finally:
        STATS.write_text(before)


if __name__ == "__main__":
    main()
