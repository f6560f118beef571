"""Works LEAST to MOST ms at every multiple of MS; skips the multiples that it missed.

usage: absolute.py MS LEAST MOST
"""

import random
import sys
import time

period_s, least_s, most_s = (float(arg) / 1e3 for arg in sys.argv[1:4])
began, job = time.monotonic(), 0
while True:
    until = time.thread_time() + random.uniform(least_s, most_s)
    while time.thread_time() < until:
        pass
    job = max(job + 1, int((time.monotonic() - began) / period_s))
    time.sleep(max(0.0, began + job * period_s - time.monotonic()))
