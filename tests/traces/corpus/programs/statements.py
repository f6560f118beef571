"""Writes TEXT to its output at random times (a Poisson process), such as statements for a database.

usage: statements.py PER_SECOND TEXT
"""

import random
import sys
import time

while True:
    time.sleep(random.expovariate(float(sys.argv[1])))
    print(sys.argv[2], flush=True)
