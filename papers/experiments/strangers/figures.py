"""Count and 99th percentile of a program's events.

usage: figures.py PERIOD_MS                 times in ms among the words of the standard input
       figures.py PERIOD_MS --stamp REGEX   the times when lines that match come in

The count is of periods: events that are made up for in a burst count once. The percentile is of the time between two events.
"""

import math
import os
import re
import sys
import time

seconds = float(os.environ["SECONDS_TO_RUN"])
period = float(sys.argv[1])
if len(sys.argv) > 2:
    regex, times, rest = re.compile(sys.argv[3].encode()), [], b""
    while not times or time.monotonic() * 1000 - times[0] < seconds * 1000:
        data = os.read(0, 65536)
        if not data:
            break
        now = time.monotonic() * 1000
        *lines, rest = re.split(rb"[\r\n]", rest + data)
        times += [now for line in lines if regex.search(line)]
else:
    times = [float(word) for word in re.findall(r"(?<!\S)-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\S)", sys.stdin.read())]
if not times:
    sys.exit("no events")
times = sorted(t for t in times if t <= min(times) + seconds * 1000)
# Of ten phases that one in which jitter crosses the fewest borders.
count = max(len({int((t - times[0]) / period + phase / 10) for t in times}) for phase in range(10))
gaps = sorted(b - a for a, b in zip(times, times[1:])) or [seconds * 1000]
print(f"count {count}\np99_ms {gaps[math.ceil(0.99 * len(gaps)) - 1]:.1f}")
