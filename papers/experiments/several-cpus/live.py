#!/usr/bin/env python3
"""Periodic processes on all CPUs of this machine, beside four hogs for each.

Each process is released every PERIOD, works for WORK of CPU time, and is in time if it has done so
by its next release. Jobs that it never came to are not in time. The first 3 s have a column of
their own.

usage: live.py [--runs N] [--onbeat PATH] PROCESSES..., as root; prints a Markdown table."""

import argparse
import os
import statistics
import subprocess
import sys
import time

PERIOD, WORK, SECONDS, BEGIN = 0.010, 0.003, 10.0, 3.0
HOGS = 4


def work(offset, report):
    """One process: its jobs in time in the first `BEGIN` seconds, and later."""
    began = release = time.monotonic() + offset
    in_time = [0, 0]
    while release < began + SECONDS:
        time.sleep(max(0.0, release - time.monotonic()))
        end = time.thread_time() + WORK
        while time.thread_time() < end:
            pass
        late = time.monotonic() - release > PERIOD
        in_time[release >= began + BEGIN] += not late
        # One that is late by periods goes on with the present one.
        release += PERIOD * max(1, int((time.monotonic() - release) / PERIOD))
    os.write(report, f"{in_time[0]} {in_time[1]}\n".encode())


def program(processes):
    """What each way starts: the processes, and a line from each."""
    out, report = os.pipe()
    for number in range(processes):
        if os.fork() == 0:
            work(0.1 + PERIOD * number / processes, report)
            os._exit(0)
    os.close(report)
    with os.fdopen(out) as lines:
        sys.stdout.write(lines.read())


def measure(way, processes):
    """The shares in time in all, after the begin, and of the process with the fewest after it."""
    command = [*way, sys.executable, __file__, "--program", str(processes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    counts = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    due, later = SECONDS / PERIOD, (SECONDS - BEGIN) / PERIOD
    return (
        sum(map(sum, counts)) / due / processes,
        sum(count[1] for count in counts) / later / processes,
        min(count[1] for count in counts) / later,
    )


def cell(values):
    shares = [100 * value for value in values]
    return f"{statistics.median(shares):.1f}% ({min(shares):.1f} to {max(shares):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("processes", type=int, nargs="+")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--onbeat", default="onbeat")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        program(options.processes[0])
        return
    cpus = os.cpu_count()
    ways = {
        "nothing": [],
        "nice -n -20": ["nice", "-n", "-20"],
        "chrt -r 1": ["chrt", "-r", "1"],
        "onbeat": [options.onbeat, "run", "--children", "--quiet", "--"],
    }
    print(f"{cpus} CPUs, {HOGS * cpus} hogs, {options.runs} runs of {SECONDS:.0f} s; Linux {os.uname().release}\n")
    print("| processes | of the CPUs | way | in time | after 3 s | the worst process after 3 s |")
    print("|---:|---:|---|---:|---:|---:|", flush=True)
    hogs = subprocess.Popen(["stress-ng", "--quiet", "--cpu", str(HOGS * cpus)])
    try:
        for processes in options.processes:
            share = processes * WORK / PERIOD / cpus
            for name, way in ways.items():
                try:
                    runs = [measure(way, processes) for _ in range(options.runs)]
                except subprocess.CalledProcessError as error:
                    cells = [f"it ends with {error.returncode}", "-", "-"]
                else:
                    cells = [cell(values) for values in zip(*runs)]
                print(f"| {processes} | {share:.0%} | {name} | {' | '.join(cells)} |", flush=True)
    finally:
        hogs.terminate()
        hogs.wait()


if __name__ == "__main__":
    main()
