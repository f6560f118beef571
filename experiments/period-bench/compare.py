"""Times FINUFFT and NumPy's plain sum on the bench's task, and prints them beside criterion's figures.

The task: the spectrum of 100 and of 1000 events from 0 to 1000 Hz in steps of 0.1 Hz. FINUFFT is
planned beforehand (type 1, one thread, six digits), and only setting the points and executing is
timed. Each figure is the median of its runs.
"""

import re
import statistics
import sys
import time

import finufft
import numpy

STEP_HZ = 0.1
BINS = 10_001


def median_ms(work, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def criterion_ms(path):
    """The middle estimate of each bench, in ms, by its name."""
    to_ms = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3}
    figures, name = {}, None
    for line in open(path, encoding="utf-8"):
        head = re.match(r"(analysis/\d+/[^:\[]*?)\s*(time:|$)", line)
        if head:
            name = head[1].strip()
        times = re.search(r"time:\s+\[\S+ \S+ (\S+) (\S+) \S+ \S+\]", line)
        if times and name:
            figures[name] = float(times[1]) * to_ms[times[2]]
    return figures


def main():
    ours = criterion_ms(sys.argv[1])
    print("| events | what | ms | times the default's on the timer |")
    print("|---|---|---|---|")
    for count in (100, 1000):
        generator = numpy.random.default_rng(1)
        events = (numpy.arange(count) + 0.02 * generator.random(count)) * 1e-2
        angles = 2 * numpy.pi * STEP_HZ * events
        wrapped = numpy.mod(angles + numpy.pi, 2 * numpy.pi) - numpy.pi
        ones = numpy.ones(count, dtype=numpy.complex128)
        # Modes from -10000 to 10000: those from 0 on are the spectrum.
        plan = finufft.Plan(1, (2 * BINS - 1,), eps=1e-6, isign=-1, nthreads=1)

        def transform():
            plan.setpts(wrapped)
            return plan.execute(ones)

        def plain_sum():
            return numpy.abs(numpy.exp(-1j * numpy.outer(numpy.arange(BINS), angles)).sum(axis=1))

        fast = numpy.abs(transform())[BINS - 1 :]
        assert numpy.allclose(fast, plain_sum(), atol=1e-3 * count)
        rows = [(name.split("/", 2)[2], ms) for name, ms in ours.items() if f"/{count}/" in name]
        rows.append(("FINUFFT, planned, one thread", median_ms(transform, 200)))
        rows.append(("plain sum, NumPy", median_ms(plain_sum, 3)))
        base = ours.get(f"analysis/{count}/default/timer")
        for name, ms in rows:
            print(f"| {count} | {name} | {ms:.3f} | {ms / base:.1f} |" if base else f"| {count} | {name} | {ms:.3f} | |")


main()
