"""The service, over D-Bus: keeps tasks of this user until they are released.

What the service does for a caller ends with the caller's connection. This process has one, from the
first call until its end; a forked child has its own.
"""

from __future__ import annotations

import os
import resource
import threading
from typing import Any, List, Optional, Tuple

from ._missing import needed
from ._read import Record

_NAME = "org.onbeat.Manager1"
_KIT = "org.freedesktop.RealtimeKit1"
# As RealtimeKit grants them where nobody has configured it.
_PRIORITY, _RTTIME_US = 10, 200_000
_ERRORS = "org.onbeat.Error."
# The service answers at once, unless it waits for polkit or is stopped.
_PATIENCE_S = 60.0


class ServiceError(RuntimeError):
    """The service has not done it. The text says what happened, to which task, and what to do.

    `name` is that of the service's error without `org.onbeat.Error.` (docs/bus.md), the bus's
    own error, or `Unreachable` if there is no bus, no service or no answer. `task` is the number of
    the task; None if it was about none.
    """

    def __init__(self, name: str, task: Optional[int], text: str) -> None:
        super().__init__(name, task, text)
        self.name = name
        self.task = task

    def __str__(self) -> str:
        return str(self.args[2])


def keep(pid: int, *, children: bool = False) -> None:
    """Keeps a process with all its threads, or one thread of a process: a thread with a period gets
    a reservation that follows it.

    `pid` is the number of a process or a thread; with `children`, the processes that it starts are
    kept, too. It ends with release(), or when this process ends.

    Raises ServiceError (NoSuchTask, NotPermitted, OverQuota, ...), ValueError if `pid` cannot be a
    task's number, MissingPackageError if jeepney is not installed.
    """
    options = {"children": ("b", children)}
    _connection.call("keep", pid, "Track", "ua{sv}", (_checked(pid), options))


def keep_audio_thread(frames: int, rate_hz: int, budget_ns: Optional[int] = None) -> str:
    """Keeps the calling thread, which plays or records `frames` at `rate_hz` at a time and computes
    for at most `budget_ns` for them, until it ends.

    Says what it has: "reserved"; "watched" without a budget, because the service then finds out
    what it needs; or "priority", RealtimeKit's, where the service grants nothing.

    Raises as keep(), with what the service said, if RealtimeKit grants nothing, either.
    """
    thread, period_ns = threading.get_native_id(), 10**9 * frames // rate_hz
    try:
        if budget_ns is None:
            keep(thread)
            return "watched"
        times = (thread, budget_ns, period_ns, period_ns)
        _connection.call("reserve for", thread, "Reserve", "uttt", times)
        return "reserved"
    except ServiceError as refused:
        try:
            # RealtimeKit gives nothing to a process that may compute for longer without a pause.
            now = resource.getrlimit(resource.RLIMIT_RTTIME)
            limits = [one if 0 <= one < _RTTIME_US else _RTTIME_US for one in now]
            resource.setrlimit(resource.RLIMIT_RTTIME, (limits[0], limits[1]))
            wanted = (thread, _PRIORITY)
            _connection.call("prioritise", thread, "MakeThreadRealtime", "tu", wanted, _KIT)
        except ServiceError:
            raise refused from None
        return "priority"


def release(pid: int) -> None:
    """Ends what keep() began: the threads get back the scheduling that they had.

    Raises ServiceError, with NotHeld if this process does not keep it; and as keep().
    """
    _connection.call("release", pid, "Untrack", "u", (_checked(pid),))


def list_threads() -> List[Record]:
    """The threads that the service keeps or watches for this user, for root those of all users.

    One record each, with the service's names and an underscore for each hyphen (docs/python.md):
    `thread`, `process`, `name`, `state`, `period_ns` ...

    Raises ServiceError, and MissingPackageError if jeepney is not installed.
    """
    return _records("list the threads", "List")


def applications() -> List[Record]:
    """The applications that the threads of list() work for, one record each: the sums over their
    threads, as the reports have them (docs/formats.md).

    Raises as list().
    """
    return _records("list the applications", "ListApplications")


def _records(what: str, method: str) -> List[Record]:
    (records,) = _connection.call(what, None, method, "", ())
    return [
        {name.replace("-", "_"): value for name, (_, value) in record.items()}
        for record in records
    ]


def _checked(pid: int) -> int:
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        raise ValueError(f"{pid!r} is no number of a process or thread: it is from 1 to 2**31 - 1")
    return pid


class _Connection:
    """The connection of this process to the system bus, opened at the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bus: Any = None

    def call(
        self, what: str, task: Optional[int], method: str, signature: str, body: Tuple[Any, ...],
        name: str = _NAME,
    ) -> Tuple[Any, ...]:
        jeepney = needed("jeepney", "calls of the service")
        about = f"cannot {what}" if task is None else f"cannot {what} task {task}"
        path = "/" + name.replace(".", "/")
        address = jeepney.DBusAddress(path, bus_name=name, interface=name)
        message = jeepney.new_method_call(address, method, signature or None, body)
        with self._lock:
            if self._bus is None:
                self._bus = _opened(about, task)
            try:
                reply = self._bus.send_and_get_reply(message, timeout=_PATIENCE_S)
            except OSError as error:
                # A service that answers later must not keep what its caller believes it does not.
                self.close()
                raise _lost(about, task, error) from error
        if reply.header.message_type is jeepney.MessageType.error:
            fields = reply.header.fields
            raise _refusal(about, task, fields[jeepney.HeaderFields.error_name], reply.body)
        answer: Tuple[Any, ...] = reply.body
        return answer

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()
            self._bus = None

    def forked(self) -> None:
        """A child has no part in its parent's connection, which would outlive the parent."""
        self._lock = threading.Lock()
        self.close()


def _opened(about: str, task: Optional[int]) -> Any:
    blocking = needed("jeepney.io.blocking", "calls of the service")
    errors = needed("jeepney.wrappers", "calls of the service")
    try:
        return blocking.open_dbus_connection(bus="SYSTEM")
    except (OSError, RuntimeError, ValueError, errors.DBusErrorResponse) as error:
        raise ServiceError(
            "Unreachable",
            task,
            f"{about}: there is no system bus here ({error}); start it, or set "
            "DBUS_SYSTEM_BUS_ADDRESS",
        ) from error


def _lost(about: str, task: Optional[int], error: OSError) -> ServiceError:
    happened = f"the bus was lost ({error})"
    if isinstance(error, TimeoutError):
        happened = f"the service has not answered within {_PATIENCE_S:.0f} s"
    return ServiceError(
        "Unreachable",
        task,
        f"{about}: {happened}, and what this process kept is released; see "
        "`systemctl status onbeat`, then keep it again",
    )


def _refusal(about: str, task: Optional[int], name: str, body: Tuple[Any, ...]) -> ServiceError:
    text = str(body[0]) if body else name
    if name.startswith(_ERRORS):
        short = name[len(_ERRORS):]
        return ServiceError(short, task, f"{about}: {text} ({short})")
    if name.rpartition(".")[2] in ("ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected"):
        return ServiceError(
            "Unreachable",
            task,
            f"{about}: the service does not run ({text}); `sudo systemctl enable --now onbeat` "
            "starts it",
        )
    return ServiceError(name, task, f"{about}: {text} ({name}); see `systemctl status onbeat`")


_connection = _Connection()
os.register_at_fork(after_in_child=_connection.forked)
