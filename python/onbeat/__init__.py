"""onbeat from Python: its reports and recordings, marks of jobs, and its service.

Times are whole nanoseconds, shares of CPU time are fractions of one CPU, and the fields of records
are those of docs/formats.md, unless a function says otherwise.
"""

from ._frames import frame, report_frames
from ._marks import Job, job, mdn
from ._missing import MissingPackageError
from ._read import (
    CutOffWarning,
    FormatError,
    Record,
    Recording,
    read_lines,
    read_recording,
    read_report,
)
from ._service import (
    ServiceError,
    applications,
    keep,
    keep_audio_thread,
    list_threads as list,
    release,
)

__all__ = [
    "CutOffWarning",
    "FormatError",
    "Job",
    "MissingPackageError",
    "Record",
    "Recording",
    "ServiceError",
    "applications",
    "frame",
    "job",
    "keep",
    "keep_audio_thread",
    "list",
    "mdn",
    "read_lines",
    "read_recording",
    "read_report",
    "release",
    "report_frames",
]
