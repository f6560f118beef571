"""What a thread says of its jobs: marks, which are one system call each (docs/marks.md).

`onbeat run`, `attach` and the service hear them. Without a listener nothing happens.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import warnings
from contextlib import ContextDecorator
from typing import Callable, Optional

_MARK = 0x4F4E4254
_BEGIN, _END, _MISSED = 1, 2, 3


class Job(ContextDecorator):
    """A job of the calling thread, from the begin of the block to its end, whatever ends it.

    One instance may be used again and again, and by several threads.
    """

    def __enter__(self) -> "Job":
        _mark(_BEGIN)
        return self

    def __exit__(self, *raised: object) -> None:
        _mark(_END)


def job() -> Job:
    """Marks a job of the calling thread: `with onbeat.job():`, or `@onbeat.job()` on a function.

    Jobs of one thread do not nest, and a job ends on the thread that began it, so no `await`
    belongs into one.
    """
    return Job()


def mdn() -> None:
    """Missed deadline notification: the calling thread has just missed a deadline."""
    _mark(_MISSED)


def _mark(kind: int) -> None:
    call = _call()
    if call is not None:
        call(_MARK, kind, 0, 0, 0)


@functools.lru_cache(maxsize=None)
def _call() -> Optional[Callable[..., int]]:
    """prctl(), if a filter of system calls does not kill for a mark: a child tries it.

    PyDLL keeps the interpreter's lock, because giving it to another thread would delay the job by
    more than the call takes.
    """
    prctl = ctypes.PyDLL(None).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    try:
        with open("/proc/self/status") as status:
            filtered = re.search(r"^Seccomp:\t[12]", status.read(), re.MULTILINE)
    except OSError:
        return None
    if not filtered:
        return prctl
    with warnings.catch_warnings():
        # The child makes two calls, whatever other threads hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        prctl(_MARK, 0, 0, 0, 0)
        os._exit(0)
    try:
        return prctl if os.waitpid(child, 0)[1] == 0 else None
    except ChildProcessError:
        return None
