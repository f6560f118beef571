#!/usr/bin/env python3
"""Remakes recordings of the corpus: one half's, or those of some programs of it.

A half is a folder with `programs.toml`; README.md here says what its keys mean. Writes `apps`,
`truth.json` and `README.md` of that folder. Needs root, Debian's packages named in that file, and
onbeat in PATH, or its path in ONBEAT.

usage: record.py development|test [PROGRAM...]
"""

import collections
import gzip
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 7
HOGS = 4
DISPLAYS = {"development": ":77", "test": ":78"}
LARGEST_BYTES = 60_000
# A thread is starved whose jobs are late, or missing, more often than this.
STARVED = 0.1


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    half = HERE / sys.argv[1]
    programs = tomllib.loads((half / "programs.toml").read_text())
    unknown = set(sys.argv[2:]) - set(programs)
    if unknown:
        sys.exit(f"no such programs: {', '.join(sorted(unknown))}")
    truth_file = half / "truth.json"
    truth = json.loads(truth_file.read_text()) if truth_file.exists() else {}
    for name in sys.argv[2:] or programs:
        for hogs in programs[name].get("hogs", [0, HOGS]):
            label = f"{name}.l{hogs}"
            try:
                truth[label] = record(half, label, programs[name], hogs)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                print(f"{label}: {error}", file=sys.stderr)
        write_truth(truth_file, truth)
    write_readme(half, programs, truth)


def record(half, label, program, hogs):
    """Records one program beside so many hogs; returns the truth about its threads."""
    started = []
    with tempfile.TemporaryDirectory(prefix="corpus") as folder:
        environment = os.environ | {
            "W": folder,
            "P": str(HERE / "programs"),
            "LOG": f"{folder}/log",
            "HOME": folder,
            "XDG_RUNTIME_DIR": folder,
            "DISPLAY": DISPLAYS[half.name],
            "SDL_AUDIODRIVER": "dummy",
            "SDL_RENDER_DRIVER": "software",
        }

        def start(command, nice=0, wait_s=0.0):
            process = subprocess.Popen(
                ["sh", "-c", command],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=lambda: alone(nice),
            )
            started.append(process)
            time.sleep(wait_s)
            return process

        try:
            subprocess.run(
                ["sh", "-ec", program.get("prepare", "true")],
                env=environment,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            if program.get("display"):
                start(f"exec Xvfb {DISPLAYS[half.name]} -screen 0 1280x1024x24", wait_s=1.5)
            for _ in range(hogs):
                start("exec stress-ng --cpu 1 --quiet")
            # Without hogs, other work on the machine must not look like some.
            top = start(program["run"], nice=0 if hogs else -20, wait_s=program.get("warm_s", 2))
            names = program.get("processes")
            found = [pid for pid in descendants(top.pid) if not names or comm(pid) in names]
            if program.get("children"):
                found = [top.pid]
            if not found or top.poll() is not None:
                raise RuntimeError("the program has ended, or has no such process")
            raw = pathlib.Path(folder) / "raw"
            command = [os.environ.get("ONBEAT", "onbeat"), "record", "-q", "-o", raw]
            command += ["--duration", f"{SECONDS}s"] + [f"--pid={pid}" for pid in found]
            began = time.monotonic_ns()
            subprocess.run(
                command + (["--children"] if program.get("children") else []),
                check=True,
                stderr=subprocess.DEVNULL,
            )
            span = (began, time.monotonic_ns())
            measured = intervals(pathlib.Path(environment["LOG"]), span)
            return keep(raw, half / "apps" / f"{label}.gz", program["threads"], measured)
        finally:
            end(started)


def alone(nice):
    """Gives this process a session and so, where the kernel groups by session, a share of its own
    with that nice value."""
    os.setsid()
    os.nice(nice)
    group = pathlib.Path("/proc/self/autogroup")
    if group.exists():
        group.write_text(str(nice))


def descendants(top):
    """The process and all that it started, by `/proc`."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [top]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def end(started):
    """Ends what this script started, the last first."""
    for process in reversed(started):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in reversed(descendants(process.pid)):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            time.sleep(0.5 if number == signal.SIGTERM else 0)
        process.wait()


def intervals(log, span):
    """The intervals in ms between the times in ns that a program wrote within the recording."""
    if not log.exists():
        return []
    times = [int(line) for line in log.read_text().split("\n")[:-1]]
    times = [at for at in times if span[0] <= at <= span[1]]
    return [(b - a) / 1e6 for a, b in zip(times, times[1:])]


def keep(raw, kept, threads, measured):
    """Writes the recording's threads that are to be kept; returns the truth about them."""
    with (gzip.open if raw.read_bytes()[:2] == b"\x1f\x8b" else open)(raw, "rt") as file:
        events = [json.loads(line) for line in file]
    bursts = number_threads(events)
    truth = {}
    for name, told in threads.items():
        if name not in bursts:
            raise RuntimeError(f"no thread {name}: {', '.join(sorted(bursts))}")
        truth[name] = None if told == "none" else true_periods(told, measured, bursts[name])
    text = smallest(events, truth)
    kept.write_bytes(text)
    counts = ", ".join(f"{name} {len(bursts[name])}" for name in truth)
    print(f"{kept.name}: {len(text)} bytes; bursts: {counts}; {json.dumps(truth)}", flush=True)
    return truth


def smallest(events, truth):
    """The events, compressed: of all threads if that is small enough, else only of those whose
    truth is known, and if that is too large, too, only up to a time."""
    times = [at_ns(event) for event in events[1:]]
    for only, share in [(None, 1.0)] + [(truth, n / 20) for n in range(20, 0, -1)]:
        until = min(times) + share * (max(times) - min(times))
        until_then = [events[0]] + [event for event in events[1:] if at_ns(event) <= until]
        text = gzip.compress("".join(lines(until_then, only)).encode(), 9, mtime=0)
        if len(text) <= LARGEST_BYTES:
            return text
    raise RuntimeError("too many events")


def at_ns(event):
    return event.get("blocked_ns") or event["at_ns"]


def number_threads(events):
    """Numbers threads of one name in the order of their start, those that hardly run last; returns
    the bursts by name."""
    task_of = lambda event: (event["tid"], event["started_ticks"])
    last = {task_of(event): event["comm"] for event in events if "comm" in event}
    count = collections.Counter(task_of(e) for e in events if e.get("event") == "burst")
    names, used = {}, {}
    for task in sorted(last, key=lambda task: (count[task] < 10, task[1], task[0])):
        used[last[task]] = used.get(last[task], 0) + 1
        number = used[last[task]]
        names[task] = last[task] if number == 1 else f"{last[task][:11]}#{number}"
    bursts = {}
    for event in events:
        if "tid" in event:
            event["name"] = names[task_of(event)]
        if "comm" in event:
            event["comm"] = event["name"]
        if event.get("event") == "burst":
            bursts.setdefault(event["name"], []).append(event)
    return bursts


def true_periods(told, measured, bursts):
    """The true periods in ms, and null if the thread is too starved to keep them."""
    if told == "measured":
        if len(measured) < 10:
            raise RuntimeError("the program wrote no log of its jobs")
        mean = statistics.mean(measured)
        starved = statistics.stdev(measured) > STARVED * mean
        return [round(mean, 4)] + [None] * starved
    periods = told if isinstance(told, list) else [told]
    span_ms = (bursts[-1]["blocked_ns"] - bursts[0]["woke_ns"]) / 1e6
    late = sum(b["blocked_ns"] - b["woke_ns"] > max(periods) * 1e6 for b in bursts)
    few = len(bursts) < (1 - STARVED) * span_ms / max(periods)
    return periods + [None] * (few or late > STARVED * len(bursts))


def lines(events, only):
    """The events as lines, of these threads only, with times in whole µs."""
    for event in events:
        if "name" in event and only is not None and event["name"] not in only:
            continue
        event = {key: value for key, value in event.items() if key != "name"}
        for key, value in event.items():
            if key.endswith("_ns"):
                event[key] = value // 1000 * 1000
        yield json.dumps(event, separators=(",", ":")) + "\n"


def write_truth(path, truth):
    rows = [f" {json.dumps(label)}: {json.dumps(truth[label])}" for label in sorted(truth)]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def write_readme(half, programs, truth):
    """The table of what ran."""
    rows = []
    for name, program in programs.items():
        labels = sorted(label for label in truth if label.split(".l")[0] == name)
        if not labels:
            continue
        version = subprocess.run(
            ["dpkg-query", "-W", "-f=${Package} ${Version}", program["package"]],
            capture_output=True,
            text=True,
        ).stdout
        recordings = ", ".join(f"`{label}`" for label in labels)
        rows.append(f"| {recordings} | {version or program['package']} | {program['what']} |")
    heading = f"# The {half.name} half of the corpus\n\n`../record.py` writes this table from "
    heading += "`programs.toml`, which has the commands.\n\n| recordings | version | what ran |\n"
    (half / "README.md").write_text(heading + "|---|---|---|\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
