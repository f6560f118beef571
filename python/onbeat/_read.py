"""Reads what onbeat writes: its own recordings, reports and JSON lines, plain or compressed.

Files may come from strangers: any bytes give records or a FormatError. What is cut off at the end
is left out with a CutOffWarning, as onbeat itself does.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union, cast

Record = Dict[str, Any]
Path = Union[str, "os.PathLike[str]"]

# As in onbeat's own reader.
LONGEST_LINE = 1 << 20
# The history of a report is at most 8 MiB of bursts, which take some 30 MiB as JSON.
LONGEST_REPORT = 1 << 28
# The columns of the jobs in a report's history.
JOBS = ("release_ns", "deadline_ns", "ended_ns", "executed_ns")

_VERSION = 1
_EXCERPT = 60
_READ_AT_ONCE = 1 << 20
_TABLES = ("threads", "cgroups", "history", "speeds", "decisions", "speed_decisions")


class FormatError(ValueError):
    """A file is not what it should be. The text names the file and the line, and what to do."""


class CutOffWarning(UserWarning):
    """The end of a file is cut off: what follows the last whole line was left out."""


class Recording(NamedTuple):
    """A recording in onbeat's own format."""

    header: Record
    """Its first line: `format`, `version`, and what is known of the machine."""
    events: List[Record]
    """One record per event, in the order of the file; `event` says which kind it is."""


def read_recording(path: Path) -> Recording:
    """Reads a recording that `onbeat record -o FILE` wrote, plain or compressed.

    Needs about 1 KiB of memory per event. Raises FormatError for anything else, also for the other
    formats that onbeat reads, and OSError if the file cannot be read.
    """
    header: Optional[Record] = None
    events: List[Record] = []
    for number, record in _records(path):
        if header is None:
            header = _header(path, number, record)
        elif not isinstance(record.get("event"), str):
            raise _broken(path, number, "this is no event: remove the line, or record again")
        else:
            events.append(record)
    if header is None:
        raise FormatError(f"{path}: there is no recording in it: record again")
    return Recording(header, events)


def read_lines(path: Path) -> List[Record]:
    """Reads JSON lines, one record each: `--log`, and what `analyze`, `top` and others print with
    `--json`; plain or compressed.

    Raises FormatError for anything else, and OSError if the file cannot be read.
    """
    return [record for _, record in _records(path)]


def read_report(path: Path) -> Record:
    """Reads the object that `--report` writes, plain or compressed.

    Raises FormatError for anything else, also for one that is cut off, and OSError if the file
    cannot be read.
    """
    try:
        with open(path, "rb") as file:
            text = _contents(path, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error
    if len(text) > LONGEST_REPORT:
        raise FormatError(f"{path}: longer than {LONGEST_REPORT} bytes, which no report is")
    report = _parsed(str(path), text.decode("utf-8", "replace"), "write the report again")
    if not isinstance(report.get("threads"), list):
        raise FormatError(
            f"{path}: this is no report, because it has no list of threads: read JSON lines with "
            "read_lines(), recordings with read_recording()"
        )
    for table in _TABLES:
        rows = report.get(table, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise FormatError(f"{path}: {table} is no list of objects: write the report again")
    for row in report.get("history", []):
        _check_history(path, row)
    return report


def _check_history(path: Path, row: Record) -> None:
    """Each thread's jobs are columns of one length, and its wakeups are a list."""
    jobs = row.get("recent_jobs")
    columns = [*jobs.values()] if isinstance(jobs, dict) and jobs.keys() >= set(JOBS) else [None]
    is_whole = (
        all(isinstance(column, list) for column in [*columns, row.get("wakeups_ns")])
        and len({len(column) for column in columns}) == 1
    )
    if not is_whole:
        raise FormatError(
            f"{path}: the history of thread {row.get('tid')!r} is damaged: write the report again"
        )


def _header(path: Path, number: int, record: Record) -> Record:
    if record.get("format") != "onbeat-recording":
        raise _broken(
            path,
            number,
            "this is no recording of onbeat's own format: `onbeat analyze --json` reads the other "
            "formats, read_lines() reads its output",
        )
    if record.get("version") != _VERSION:
        raise _broken(
            path,
            number,
            f"version {record.get('version')!r} of the format, and this package reads version "
            f"{_VERSION}: install the package of the onbeat that recorded it "
            f"({record.get('onbeat')!r})",
        )
    return record


def _records(path: Path) -> Iterator[Tuple[int, Record]]:
    """The objects of a file of JSON lines, with the lines' numbers."""
    for number, line, ended in _lines(path):
        text = line.decode("utf-8", "replace").strip()
        if not text:
            continue
        try:
            record = _parsed(f"{path}: line {number}", text, "remove it, or write the file again")
        except FormatError:
            if ended or number == 1:
                raise
            _warn(path, f"line {number} is cut off and left out")
            return
        yield number, record


def _lines(path: Path) -> Iterator[Tuple[int, bytes, bool]]:
    """The lines with their numbers from 1, and whether a newline ended them."""
    number = 0
    try:
        with open(path, "rb") as file:
            source = _decompressed(file)
            while True:
                line = source.readline(LONGEST_LINE + 1)
                if not line:
                    return
                number += 1
                ended = line.endswith(b"\n")
                if not ended and len(line) > LONGEST_LINE:
                    raise _broken(path, number, f"longer than {LONGEST_LINE} bytes: remove it")
                yield number, line, ended
    except EOFError as error:
        if number == 0:
            raise _damaged(path, error) from error
        _warn(path, f"the compressed data is cut off after line {number}")
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error


def _contents(path: Path, file: BinaryIO) -> bytes:
    """The whole file, and at most one piece more than the longest report."""
    source = _decompressed(file)
    pieces = []
    length = 0
    while length <= LONGEST_REPORT:
        piece = source.read(_READ_AT_ONCE)
        if not piece:
            break
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces)


def _decompressed(file: BinaryIO) -> BinaryIO:
    is_compressed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_compressed else file


def _parsed(place: str, text: str, advice: str) -> Record:
    try:
        record = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        problem = f"{place}: this is no JSON ({error}): '{_excerpt(text)}'; {advice}"
        raise FormatError(problem) from error
    if not isinstance(record, dict):
        raise FormatError(f"{place}: this is no JSON object: '{_excerpt(text)}'; {advice}")
    return record


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."


def _broken(path: Path, number: int, problem: str) -> FormatError:
    return FormatError(f"{path}: line {number}: {problem}")


def _damaged(path: Path, error: Exception) -> FormatError:
    return FormatError(f"{path}: the compressed data is damaged ({error}): copy the file again")


def _warn(path: Path, problem: str) -> None:
    warnings.warn(f"{path}: {problem}", CutOffWarning, stacklevel=2)
