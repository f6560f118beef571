"""Recordings, reports and JSON lines that the real onbeat wrote, whole and damaged."""

import gzip
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from machine import ROOT, need_package, need_root, onbeat as binary, workload
import onbeat
from onbeat import _read

FILM = ROOT / "tests/traces/onbeat/mplayer25.reserved.gz"
# How often a file is damaged at random.
DAMAGES = 500
ODD = [b"9" * 30, b"null", b"[", b'{"', b"-", b"1e999", b"\n"]


def run(*arguments):
    command = [str(word) for word in (binary(), *arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, data):
        file = self.folder / "file"
        # Some filesystems wait for the disk when a file is written anew in place.
        file.unlink(missing_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def report(self):
        report = self.folder / "report.json"
        run("analyze", "--report", report, FILM)
        return report


class Reading(Folder):
    def test_a_recording_has_the_events_that_onbeat_recorded(self):
        need_root()
        for name in ("plain.onbeat", "compressed.onbeat.gz"):
            file = self.folder / name
            run("record", "-o", file, "--", workload(), "--jobs", 20, "beat:5000/200")
            header, events = onbeat.read_recording(file)
            self.assertEqual((header["format"], header["version"]), ("onbeat-recording", 1))
            self.assertEqual(header["command"][1:], ["--jobs", "20", "beat:5000/200"])
            bursts = [event for event in events if event["event"] == "burst"]
            self.assertGreaterEqual(len(bursts), 20)
            for burst in bursts:
                self.assertLessEqual(burst["woke_ns"], burst["blocked_ns"])

    def test_lines_and_reports_are_those_of_the_same_recording(self):
        events = onbeat.read_recording(FILM).events
        lines = onbeat.read_lines(self.written(run("analyze", "--json", FILM)))
        report = onbeat.read_report(self.report())
        self.assertEqual({line["comm"] for line in lines}, {"mplayer", "Xvfb"})
        for line in lines:
            self.assertAlmostEqual(line["period_ns"] / 40e6, 1, delta=0.01)
        bursts = [event["tid"] for event in events if event["event"] == "burst"]
        for thread in report["history"]:
            self.assertEqual(len(thread["wakeups_ns"]), bursts.count(thread["tid"]))
        compressed = self.written(gzip.compress(self.report().read_bytes()))
        self.assertEqual(onbeat.read_report(compressed), report)
        decisions = onbeat.read_lines(self.written(run("replay", "--json", FILM)))
        self.assertIn("reserved", {decision["what"] for decision in decisions})

    def test_what_is_something_else_is_told_with_its_line(self):
        recording = gzip.decompress(FILM.read_bytes()).splitlines(keepends=True)
        header = json.loads(recording[0])
        newer = json.dumps({**header, "version": 2}).encode() + b"\n"
        nested = b'{"a":' * 100000 + b"1" + b"}" * 100000
        uneven = {"tid": 7, "wakeups_ns": [], "recent_jobs": {**{name: [1] for name in _read.JOBS}, "ended_ns": []}}
        cases = [
            (onbeat.read_recording, b"", "no recording in it"),
            (onbeat.read_recording, b"\n \n", "no recording in it"),
            (onbeat.read_recording, b"# tracer: nop\n", "line 1: this is no JSON"),
            (onbeat.read_recording, b'{"tid":7}\n', "onbeat analyze --json"),
            (onbeat.read_recording, newer, "version 2 of the format"),
            (onbeat.read_recording, recording[0] + b'{"at_ns":7}\n', "line 2: this is no event"),
            (onbeat.read_recording, recording[0] + b"[]\n" + recording[1], "line 2: .* no JSON ob"),
            (onbeat.read_recording, recording[0] + b"x" * 2**21, "line 2: longer than 1048576"),
            (onbeat.read_recording, b"\x1f\x8b", "damaged"),
            (onbeat.read_recording, b"\x1f\x8bnothing of the kind", "damaged"),
            (onbeat.read_lines, nested + b"\n", "line 1: this is no JSON"),
            (onbeat.read_lines, b'{"a":NaN}\n', "NaN is no number"),
            (onbeat.read_lines, b'{"a":' + b"9" * 5000 + b"x}\n", "this is no JSON"),
            (onbeat.read_report, b"", "this is no JSON"),
            (onbeat.read_report, b"[]", "no JSON object"),
            (onbeat.read_report, recording[0], "no list of threads: .*read_recording"),
            (onbeat.read_report, b'{"threads":[7]}', "threads is no list of objects"),
            (onbeat.read_report, b'{"threads":[],"speeds":null}', "speeds is no list of objects"),
            (onbeat.read_report, b'{"threads":[],"history":[{"tid":7}]}', "of thread 7 is damaged"),
            (onbeat.read_report, json.dumps({"threads": [], "history": [uneven]}), "of thread 7 is damaged"),
        ]
        for read, data, problem in cases:
            with self.assertRaisesRegex(onbeat.FormatError, problem) as raised:
                read(self.written(data))
            self.assertIn(str(self.folder / "file"), str(raised.exception))
        with self.assertRaises(FileNotFoundError):
            onbeat.read_report(self.folder / "missing")

    def test_a_report_that_never_ends_is_read_to_its_limit(self):
        endless = self.written(gzip.compress(b" " * 3 * _read._READ_AT_ONCE))
        with mock.patch.object(_read, "LONGEST_REPORT", _read._READ_AT_ONCE):
            with self.assertRaisesRegex(onbeat.FormatError, "which no report is"):
                onbeat.read_report(endless)

    def test_an_end_that_is_cut_off_is_left_out_with_a_warning(self):
        whole = gzip.decompress(FILM.read_bytes())
        events = onbeat.read_recording(FILM).events
        whole = b"".join(whole.splitlines(keepends=True)[:50])
        for length in range(len(whole) - 300, len(whole)):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                read = onbeat.read_recording(self.written(whole[:length])).events
            self.assertEqual(read, events[:len(read)])
            # Cut off behind a whole line, before or after its newline, nothing is left out.
            is_whole = b"\n" in whole[length - 1:length + 1]
            expected = [] if is_whole else [onbeat.CutOffWarning]
            self.assertEqual([one.category for one in told], expected)
        with self.assertWarnsRegex(onbeat.CutOffWarning, "compressed data is cut off after line"):
            compressed = FILM.read_bytes()
            read = onbeat.read_recording(self.written(compressed[:len(compressed) // 2])).events
        self.assertEqual(read, events[:len(read)])
        self.assertGreater(len(read), 100)

    def test_any_bytes_give_records_or_one_clear_error(self):
        lines = gzip.decompress(FILM.read_bytes()).splitlines(keepends=True)
        recording = b"".join(lines[:40])
        report = json.loads(self.report().read_bytes())
        for thread in report["history"]:
            for jobs in (thread["recent_jobs"], {"": thread["wakeups_ns"]}):
                for column in jobs.values():
                    del column[5:]
        report = json.dumps(report).encode()
        decisions = run("replay", "--json", FILM).encode()[:4000]
        chance = random.Random(7)
        errors = 0
        for read, whole in (
            (onbeat.read_recording, recording),
            (onbeat.read_recording, gzip.compress(recording)),
            (onbeat.read_report, report),
            (onbeat.read_lines, decisions),
        ):
            for _ in range(DAMAGES):
                file = self.written(damaged(whole, chance))
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", onbeat.CutOffWarning)
                        records = read(file)
                except onbeat.FormatError as error:
                    self.assertIn(str(file), str(error))
                    errors += 1
                else:
                    # Of one in ten: pandas is slow.
                    if importlib.util.find_spec("pandas") and chance.random() < 0.1:
                        make_frames(records)
        self.assertGreater(errors, DAMAGES)
        self.assertLess(errors, 4 * DAMAGES)


def make_frames(records):
    if isinstance(records, dict):
        onbeat.report_frames(records)
    else:
        onbeat.frame(getattr(records, "events", records))


def damaged(whole, chance):
    """The bytes with a few changed, removed, or put elsewhere, or the end cut off."""
    data = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at:at + 1] = chance.choice(ODD)
        elif kind == 2:
            del data[at:at + chance.randint(1, 20)]
        elif kind == 3:
            data[at:at] = data[at // 2:at // 2 + 40]
        elif chance.random() < 0.2:
            del data[at:]
        if not data:
            break
    return bytes(data)


class Frames(Folder):
    def setUp(self):
        need_package("pandas")
        super().setUp()

    def test_events_are_rows_with_whole_numbers(self):
        events = onbeat.read_recording(FILM).events
        frame = onbeat.frame(events)
        self.assertEqual(len(frame), len(events))
        self.assertEqual(str(frame["woke_ns"].dtype), "Int64")
        bursts = frame[frame["event"] == "burst"]
        used = sum(event["executed_ns"] for event in events if event["event"] == "burst")
        self.assertEqual(bursts["executed_ns"].sum(), used)

    def test_a_reports_tables_are_frames(self):
        report = onbeat.read_report(self.report())
        frames = onbeat.report_frames(report)
        self.assertEqual(set(frames), {"threads", "jobs", "wakeups"})
        self.assertEqual(
            list(frames["threads"]["response_time.p50_ns"]),
            [thread["response_time"]["p50_ns"] for thread in report["threads"]],
        )
        for thread in report["history"]:
            for name, of in (("jobs", thread["recent_jobs"]["ended_ns"]),
                             ("wakeups", thread["wakeups_ns"])):
                rows = frames[name][frames[name]["tid"] == thread["tid"]]
                self.assertEqual(list(rows["ended_ns" if name == "jobs" else "woke_ns"]), of)
        empty = onbeat.report_frames({"threads": [], "history": []})
        self.assertEqual(list(empty["jobs"]), ["tid", "started_ticks", *_read.JOBS])

    def test_no_number_is_rounded_and_nothing_is_made_up(self):
        large = 2**53 + 1
        frame = onbeat.frame([
            {"ns": large, "end_ns": 2**64 - 1, "huge": 2**64, "old": None},
            {"ok": True, "share": 0.5},
            {"ns": None, "list": [1], "old": {"ns": large, "deep": {"a": 1}}, "mixed": 1},
            {"end_ns": None, "mixed": "one"},
        ])
        self.assertEqual(frame["ns"][0], large)
        self.assertTrue(frame["ns"].isna()[2])
        self.assertEqual((frame["end_ns"][0], str(frame["end_ns"].dtype)), (2**64 - 1, "UInt64"))
        self.assertEqual((frame["huge"][0], frame["mixed"][3]), (2**64, "one"))
        self.assertEqual(str(frame["ok"].dtype), "boolean")
        self.assertEqual(str(frame["share"].dtype), "float64")
        self.assertEqual((frame["old.ns"][2], frame["old.deep"][2]), (large, {"a": 1}))
        self.assertNotIn("old", frame)
        self.assertEqual((frame["list"][2], len(onbeat.frame([]))), ([1], 0))


class Without(unittest.TestCase):
    def test_frames_without_pandas_say_what_to_install(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(onbeat.MissingPackageError, "apt install python3-pandas"):
                onbeat.frame([])

