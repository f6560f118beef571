"""Sleeps independent random intervals, with a little work after each.

usage: renewal.py lognormal MEAN_MS SIGMA | gamma MEAN_MS SHAPE | bursts ON_MS OFF_MS | like FILE
       `bursts` sleeps 1 to 12 ms while it is on, and is on and off for exponential times;
       `like` draws from the intervals between the bursts of the busiest thread of a recording
"""

import collections
import gzip
import itertools
import json
import math
import random
import sys
import time


def lognormal(mean, sigma):
    while True:
        yield random.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma)


def gamma(mean, shape):
    while True:
        yield random.gammavariate(shape, mean / shape)


def bursts(on, off):
    while True:
        left = random.expovariate(1 / on)
        while left > 0:
            interval = random.uniform(1, 12)
            left -= interval
            yield interval
        yield random.expovariate(1 / off)


def like(path):
    woke = collections.defaultdict(list)
    with gzip.open(path, "rt") as file:
        for event in map(json.loads, file):
            if event.get("event") == "burst":
                woke[event["tid"]].append(event["woke_ns"] / 1e6)
    times = max(woke.values(), key=len)
    intervals = [b - a for a, b in itertools.pairwise(times)]
    while True:
        yield random.choice(intervals)


draw, arguments = globals()[sys.argv[1]], sys.argv[2:]
for interval_ms in draw(*(arguments if draw is like else map(float, arguments))):
    time.sleep(interval_ms / 1e3)
    until = time.thread_time() + random.uniform(0.0001, 0.001)
    while time.thread_time() < until:
        pass
