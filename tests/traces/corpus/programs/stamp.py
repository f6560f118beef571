"""Logs when a program writes a line that begins with TEXT.

usage: COMMAND | stamp.py TEXT
"""

import os
import sys
import time

with open(os.environ["LOG"], "w", buffering=1) as log:
    for line in sys.stdin:
        if line.startswith(sys.argv[1]):
            print(time.monotonic_ns(), file=log)
