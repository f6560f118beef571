"""Records as data frames of pandas, which is imported when the first frame is made."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List

from ._missing import needed
from ._read import JOBS, Record

if TYPE_CHECKING:
    import pandas

_TABLES = ("threads", "cgroups", "speeds", "decisions", "speed_decisions")
_THREAD = ("tid", "started_ticks")


def frame(records: Iterable[Record]) -> "pandas.DataFrame":
    """A data frame with one row per record, in their order.

    Each field that any record has is a column; so is each member of a field that is an object, with
    the field's name and a dot before its own: `response_time.p50_ns`. Whole numbers stay whole
    (`Int64`, or `UInt64` from 2**63 on) because a float would round times of a machine that has run
    for 104 days. What is null or absent is missing. Lists, and objects inside objects, stay as they
    are.

    Raises MissingPackageError if pandas is not installed.
    """
    return _frame(records, [])


def _frame(records: Iterable[Record], first: List[str]) -> "pandas.DataFrame":
    """The same; these columns are the first, and are there without a record, too."""
    pandas = needed("pandas", "data frames")
    rows = [_flat(record) for record in records]
    # A dict keeps the order in which fields are first seen.
    names = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
    objects = {name.rpartition(".")[0] for name in names}
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        is_null_object = name in objects and all(value is None for value in values)
        if not is_null_object:
            columns[name] = _column(pandas, values)
    return pandas.DataFrame(columns, index=range(len(rows)))


def report_frames(report: Record) -> Dict[str, "pandas.DataFrame"]:
    """The tables of a report that read_report() gave, by name.

    - `threads`, `decisions`, `cgroups`, `speeds`, `speed_decisions`: one row per entry, as frame()
      makes them
    - `jobs`: one row per job in `history`: `tid`, `started_ticks`, `release_ns`, `deadline_ns`,
      `ended_ns`, `executed_ns`
    - `wakeups`: one row per wakeup in `history`: `tid`, `started_ticks`, `woke_ns`

    Tables that the report does not have are not in the answer. Raises MissingPackageError if pandas
    is not installed.
    """
    frames = {table: frame(report[table]) for table in _TABLES if table in report}
    if "history" in report:
        frames["jobs"] = _frame(_jobs(report["history"]), [*_THREAD, *JOBS])
        frames["wakeups"] = _frame(_wakeups(report["history"]), [*_THREAD, "woke_ns"])
    return frames


def _jobs(history: List[Record]) -> Iterable[Record]:
    for thread in history:
        jobs = thread["recent_jobs"]
        for values in zip(*jobs.values()):
            yield {**_thread(thread), **dict(zip(jobs, values))}


def _wakeups(history: List[Record]) -> Iterable[Record]:
    for thread in history:
        for woke_ns in thread["wakeups_ns"]:
            yield {**_thread(thread), "woke_ns": woke_ns}


def _thread(record: Record) -> Record:
    return {name: record.get(name) for name in _THREAD}


def _flat(record: Record) -> Record:
    flat: Record = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat.update((f"{name}.{member}", inner) for member, inner in value.items())
        else:
            flat[name] = value
    return flat


def _column(pandas: ModuleType, values: List[Any]) -> Any:
    """The values in the narrowest type that loses nothing; a mixture stays as it is."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        numbers = [value for value in values if value is not None]
        if -(2**63) <= min(numbers) and max(numbers) < 2**63:
            return pandas.array(values, dtype="Int64")
        if 0 <= min(numbers) and max(numbers) < 2**64:
            return pandas.array(values, dtype="UInt64")
    if kinds == {bool}:
        return pandas.array(values, dtype="boolean")
    if kinds == {float}:
        return pandas.Series(values, dtype="float64")
    return pandas.Series(values, dtype="object")
