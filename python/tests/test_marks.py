"""Marks of a Python program, heard by the real onbeat."""

import os
import subprocess
import sys
import tempfile
import unittest
import pathlib

from machine import HERE, end, eventually, need_root, onbeat as binary
import onbeat

# It marks jobs until its standard input ends.
MARKER = """
import select, sys, threading, time
import onbeat
@onbeat.job()
def work():
    sum(range(2000))
while not select.select([sys.stdin], [], [], 0.01)[0]:
    with onbeat.job():
        sum(range(2000))
    work()
    onbeat.mdn()
"""

# Five jobs, each of which says that it was late.
JOBS = """
import onbeat
for i in range(5):
    with onbeat.job():
        sum(range(2000))
    onbeat.mdn()
"""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parent)}


class Marks(unittest.TestCase):
    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def test_jobs_of_a_python_program_are_heard(self):
        need_root()
        folder = self.folder()
        log, report = folder / "log.jsonl", folder / "report.json"
        program = subprocess.Popen(
            [binary(), "run", "--always", "--log", log, "--report", report, "--", sys.executable, "-c", MARKER],
            env={**ENVIRONMENT, "ONBEAT_STATE_DIR": str(folder / "state")},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        self.addCleanup(end, program)
        heard = lambda: log.exists() and "it marks its jobs" in log.read_text()
        eventually("a decision because of its marks", heard)
        program.stdin.close()
        program.wait()
        python = max(onbeat.read_report(report)["threads"], key=lambda thread: thread["marks"])
        self.assertGreater(python["marks"], 0)
        self.assertGreater(python["missed_told"], 0)
        self.assertIn("reserved", {one["what"] for one in onbeat.read_lines(log)})

    def test_each_mark_is_heard_as_what_it_is(self):
        need_root()
        file = self.folder() / "jobs.onbeat"
        command = [binary(), "record", "-o", file, "--", sys.executable, "-c", JOBS]
        subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True)
        events = onbeat.read_recording(file).events
        said = [event["said"] for event in events if event["event"] == "marked"]
        self.assertEqual(said, ["job_began", "job_ended", "missed_deadline"] * 5)


if __name__ == "__main__":
    unittest.main()
