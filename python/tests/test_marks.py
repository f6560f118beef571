"""Marks of a Python program, heard by the real onbeat."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from machine import HERE, need_root, onbeat as binary
import onbeat

# Six jobs, each of which says that it was late.
JOBS = """
import onbeat
@onbeat.job()
def work():
    sum(range(2000))
for i in range(3):
    with onbeat.job():
        sum(range(2000))
    onbeat.mdn()
    work()
    onbeat.mdn()
"""


class Marks(unittest.TestCase):
    def test_each_mark_is_heard_as_what_it_is(self):
        need_root()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "jobs.onbeat"
            subprocess.run(
                [binary(), "record", "-o", file, "--", sys.executable, "-c", JOBS],
                env={**os.environ, "PYTHONPATH": str(HERE.parent)}, capture_output=True, check=True,
            )
            events = onbeat.read_recording(file).events
        said = [event["said"] for event in events if event["event"] == "marked"]
        self.assertEqual(said, ["job_began", "job_ended", "missed_deadline"] * 6)
