"""Starts programs that do not outlive the script that measures them, however that ends."""

import contextlib
import os
import signal
import subprocess
import sys

# For so long a program may take to end.
PATIENCE_S = 10


def end_in_order():
    """Has a signal that ends this script run its `finally` blocks before."""
    for number in [signal.SIGTERM, signal.SIGHUP]:
        signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextlib.contextmanager
def running(words, **options):
    """A program and what it starts, up to the end of the block. The program itself ends with a killed script, too."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *words], start_new_session=True, **options
    )
    try:
        yield process
    finally:
        for number in [signal.SIGTERM, signal.SIGKILL]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
                break


def finished(words):
    """Runs a program to its end; as `subprocess.run`, with its output as text."""
    with running(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)
