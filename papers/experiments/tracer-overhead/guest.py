#!/usr/bin/env python3
"""Runs the guest, one image of it or several, and prints what the tracers cost in virtual time."""

import argparse
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
CASE = "each_tracer_finds_the_period_at_its_cost"


def images(folder):
    """What each image has left, the first one's first; all have to have come to their ends."""
    found = [*folder.glob(CASE), *sorted(folder.glob(f"{CASE}-image-*"))]
    if not found:
        sys.exit(f"there is no result of {CASE} in {folder}")
    for image in found:
        if "\nonbeat-vm-case-ended: 0\n" not in (image / "serial.log").read_text(errors="replace"):
            sys.exit(f"{image} is of a case that failed: its serial.log says why")
    return found


def spread(values):
    """The median, and how far the others are from each other."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.2f}%" if low == high else f"{middle:.2f}% ({low:.2f} to {high:.2f})"


def costs(runs):
    slower = {}
    for run in runs:
        for name, *_, wall, cpu, _, start in run:
            slower.setdefault(name, []).append((float(wall) / 10, float(cpu) / 10, float(start) / 1000))
    made = ["| tracer | wall slower | CPU slower | at the start |", "|---|---:|---:|---:|"]
    for name, values in slower.items():
        if name != "untraced":
            wall, cpu, start = zip(*values)
            made.append(f"| {name} | {spread(wall)} | {spread(cpu)} | {statistics.median(start):.0f} ms |")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1)
    count = parser.parse_args().images
    folder = ROOT / "papers/experiments/out/images"
    run = [ROOT / "tests/vm/run.sh", "--images", str(count), "--results", folder, CASE]
    subprocess.run(run, check=True, stdout=sys.stderr)
    runs = [[line.split() for line in (image / "cost.txt").read_text().splitlines()] for image in images(folder)]
    print(f"{count} images, virtual time.\n" if count > 1 else "1 image, virtual time.\n")
    print("\n".join(costs(runs)))


if __name__ == "__main__":
    main()
