"""What a thread says of its jobs, through the static probes in libonbeat.so.

`onbeat run` and `onbeat attach` listen to them. Nobody else pays for them, and a program that runs
where libonbeat is not installed goes on without.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from contextlib import ContextDecorator
from typing import Callable, Dict, Optional

_LIBRARY = "libonbeat.so.0"
_CALLS = ("onbeat_job_begin", "onbeat_job_end", "onbeat_mdn")


class MissingLibraryWarning(RuntimeWarning):
    """The marks are not heard because libonbeat is missing, or too old. It is given once."""


class Job(ContextDecorator):
    """A job of the calling thread, from the begin of the block to its end, whatever ends it.

    One instance may be used again and again, and by several threads.
    """

    def __enter__(self) -> "Job":
        _call("onbeat_job_begin")
        return self

    def __exit__(self, *raised: object) -> None:
        _call("onbeat_job_end")


def job() -> Job:
    """Marks a job of the calling thread: `with onbeat.job():`, or `@onbeat.job()` on a function.

    Jobs of one thread do not nest, and a job ends on the thread that began it, so no `await`
    belongs into one. If libonbeat is missing, the first use gives a MissingLibraryWarning, and the
    block runs as it would without a mark; `warnings.simplefilter("error",
    onbeat.MissingLibraryWarning)` makes that an exception.
    """
    return Job()


def mdn() -> None:
    """Missed deadline notification: the calling thread has just missed a deadline.

    If libonbeat is missing, as with job().
    """
    _call("onbeat_mdn")


def _call(name: str) -> None:
    calls = _calls()
    if calls is not None:
        calls[name]()


@functools.lru_cache(maxsize=None)
def _calls() -> Optional[Dict[str, Callable[[], None]]]:
    """The library's functions by name; none, with a warning, if it is not there.

    PyDLL keeps the interpreter's lock, because giving it to another thread would delay the job by
    more than the call takes.
    """
    try:
        library = ctypes.PyDLL(_LIBRARY)
    except OSError as error:
        _warn(f"{_LIBRARY} cannot be loaded ({error})")
        return None
    try:
        calls = {name: getattr(library, name) for name in _CALLS}
    except AttributeError:
        _warn(f"{_LIBRARY} has no functions for marks, because it is older than 0.2 or was built "
              "without <sys/sdt.h>")
        return None
    for call in calls.values():
        call.argtypes, call.restype = [], None
    return calls


def _warn(problem: str) -> None:
    warnings.warn(
        f"onbeat does not hear the marks of this program: {problem}; install libonbeat "
        "(`apt install libonbeat0`, or `make install`)",
        MissingLibraryWarning,
        stacklevel=5,
    )
