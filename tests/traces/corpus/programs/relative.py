"""Sleeps MS after work of LEAST to MOST ms, and logs when each job began.

usage: relative.py MS LEAST MOST
"""

import os
import random
import sys
import time

sleep_s, least_s, most_s = (float(arg) / 1e3 for arg in sys.argv[1:4])
with open(os.environ["LOG"], "w", buffering=1) as log:
    while True:
        print(time.monotonic_ns(), file=log)
        until = time.thread_time() + random.uniform(least_s, most_s)
        while time.thread_time() < until:
            pass
        time.sleep(sleep_s)
