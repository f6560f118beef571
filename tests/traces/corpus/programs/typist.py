"""Types random words into a program on a terminal, as fast as a person does.

usage: typist.py COMMAND...
"""

import os
import pty
import random
import sys
import threading
import time

pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])


def drain():
    while os.read(terminal, 65536):
        pass


threading.Thread(target=drain, daemon=True).start()
time.sleep(1)
while True:
    letters = "".join(random.choices("etaoinshrdlucm", k=random.randint(2, 9)))
    for letter in letters + random.choice("    \r"):
        os.write(terminal, letter.encode())
        time.sleep(random.lognormvariate(-2.3, 0.5))
    if random.random() < 0.1:
        time.sleep(random.expovariate(2))
