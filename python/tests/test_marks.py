"""Marks of a Python program, heard by the real onbeat."""

import os
import subprocess
import sys
import tempfile
import unittest
import pathlib

from machine import HERE, end, eventually, library_folder, need_root, onbeat as binary
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

# It says what happens without a library, or with one that has no marks.
WITHOUT = """
import warnings
import onbeat
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for i in range(3):
        with onbeat.job():
            onbeat.mdn()
print(len(told), told[0].category.__name__, told[0].filename, told[0].message)
try:
    with onbeat.job():
        raise KeyError("its own")
except KeyError:
    print("passed on")
onbeat._marks._calls.cache_clear()
warnings.simplefilter("error", onbeat.MissingLibraryWarning)
try:
    onbeat.mdn()
except onbeat.MissingLibraryWarning:
    print("an exception")
"""


def environment(library):
    return {**os.environ, "PYTHONPATH": str(HERE.parent), "LD_LIBRARY_PATH": str(library)}


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
            [binary(), "run", "--log", log, "--report", report, "--", sys.executable, "-c", MARKER],
            env={**environment(library_folder()), "ONBEAT_STATE_DIR": str(folder / "state")},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        self.addCleanup(end, program)
        heard = lambda: log.exists() and "it says where its jobs are" in log.read_text()
        eventually("a decision because of its marks", heard)
        program.stdin.close()
        program.wait()
        python = max(onbeat.read_report(report)["threads"], key=lambda thread: thread["marks"])
        self.assertGreater(python["marks"], 0)
        self.assertGreater(python["missed_told"], 0)
        self.assertIn("reserved", {one["what"] for one in onbeat.read_lines(log)})

    def test_each_mark_is_heard_as_what_it_is_if_the_library_is_preloaded(self):
        need_root()
        file = self.folder() / "jobs.onbeat"
        preloading = {**environment(library_folder()), "LD_PRELOAD": "libonbeat.so.0"}

        def heard():
            command = [binary(), "record", "-o", file, "--", sys.executable, "-c", JOBS]
            subprocess.run(command, env=preloading, capture_output=True, check=True)
            events = onbeat.read_recording(file).events
            return [event["said"] for event in events if event["event"] == "marked"]

        # On a stalled machine, a program may be heard from a later moment on.
        marks = eventually("marks", heard)
        said = ["job_began", "job_ended", "missed_deadline"] * 5
        self.assertEqual(marks, said[-len(marks):])

    def without(self, library):
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT], env=environment(library),
            capture_output=True, text=True, check=True,
        )
        return ran.stdout.splitlines()

    def test_a_program_goes_on_without_the_library_and_is_told_once(self):
        folder = self.folder()
        # The loader looks no further, so one that is installed here makes no difference.
        (folder / "libonbeat.so.0").write_text("no library")
        told, *rest = self.without(folder)
        self.assertTrue(told.startswith("1 MissingLibraryWarning <string> "), told)
        self.assertIn("cannot be loaded", told)
        self.assertIn("install libonbeat", told)
        self.assertEqual(rest, ["passed on", "an exception"])

    def test_a_library_without_marks_is_as_good_as_none(self):
        folder = self.folder()
        subprocess.run(
            ["cc", "-shared", "-o", folder / "libonbeat.so.0", "-x", "c", os.devnull], check=True
        )
        told, *rest = self.without(folder)
        self.assertIn("has no functions for marks", told)
        self.assertEqual(rest, ["passed on", "an exception"])


if __name__ == "__main__":
    unittest.main()
