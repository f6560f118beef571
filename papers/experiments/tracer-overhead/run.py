#!/usr/bin/env python3
"""What tracing costs the traced: LFS++, Table II, with today's tracers.

Three measurements. The run time of each BPF program per invocation, as the kernel counts it
(kernel.bpf_stats_enabled). A video transcode, traced and not, in rounds: every tracer once per
round, in an order that rotates, each compared with the untraced run of its own round, so that slow
drift of the machine cancels out. And what each tracer makes of a player's period (accuracy.py).
README.md says how to read the figures.

Needs root, ffmpeg, mplayer, stress-ng, bpftool, strace, perf, and onbeat's release binary.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import accuracy
import tables
from programs import end_in_order, finished, running

ROOT = pathlib.Path(__file__).resolve().parents[3]
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
PAPER = {
    "onbeat, bpf": ("QTRACE (wakeups)", 0.02),
    "onbeat, bpf-syscalls": ("QTRACE (syscalls)", 0.74),
    "onbeat, ptrace": ("QOSTRACE", 2.17),
    "strace, the same calls": ("STRACE", 9.32),
    "strace -c -f": ("STRACE", 9.32),
}
# Those that onbeat's ptrace tracer stops at, as strace is to be told them.
CALLS = (
    "nanosleep,clock_nanosleep,poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,futex,read,readv,write,writev,"
    "recvfrom,recvmsg,sendto,sendmsg,accept,connect,ioctl,wait4,waitid"
)
# The hot ones; the others run once per thread or exec.
PROGRAMS = ["switched", "waking", "wakeup_new"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    parser.add_argument("--onbeat", default=f"{target}/release/onbeat", help="onbeat's binary")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of paired transcodes")
    parser.add_argument("--film", type=int, default=3, help="seconds of film to transcode")
    parser.add_argument("--play", type=int, default=8, help="seconds that a player is heard")
    parser.add_argument("--watch", type=int, default=6, help="seconds to count invocations for")
    parser.add_argument("--readme", action="store_true", help="write the tables into README.md, too")
    parser.add_argument("--out", default=str(ROOT / "papers" / "experiments" / "out"), help="folder of results")
    return parser.parse_args()


def check(options):
    if os.geteuid() != 0:
        sys.exit("tracing needs root: run it with sudo")
    for tool in ["ffmpeg", "mplayer", "stress-ng", "bpftool", "strace", "perf", options.onbeat]:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: install it, or name onbeat's binary with --onbeat")


def make_film(path, seconds):
    source = "testsrc2=size=1280x720:rate=25"
    finished(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-t", str(seconds)]
        + ["-c:v", "libx264", "-preset", "veryfast", str(path)]
    ).check_returncode()


def transcode(film, endless=False):
    """The command; ffmpeg itself tells its user and system time at the end."""
    loop = ["-stream_loop", "-1"] if endless else []
    return (
        ["ffmpeg", "-hide_banner", "-nostdin", "-benchmark"]
        + loop
        + ["-i", str(film), "-c:v", "libx264", "-preset", "medium", "-f", "null", "-"]
    )


def kinds_of_onbeat(options):
    """The tracers that this onbeat has, as `--tracer` calls them."""
    told = subprocess.run(
        [options.onbeat, "record", "--tracer", "?", "-o", "x", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    values = re.search(r"possible values: ([^]]*)", told.stderr)
    if not values:
        sys.exit(f"cannot tell which tracers {options.onbeat} has:\n{told.stderr}")
    return [kind for kind in values[1].split(", ") if kind != "auto"]


def recording(options, kind, file):
    """onbeat recording to `file` by this tracer, as the words before the command."""
    return [options.onbeat, "record", "--quiet", "--tracer", kind, "-o", str(file), "--"]


def tracers(options, scratch):
    """Each tracer as the words before the command."""
    of_onbeat = {
        f"onbeat, {kind}": recording(options, kind, f"{scratch}/{kind}.rec")
        for kind in kinds_of_onbeat(options)
    }
    strace = ["strace", "-f", "-o", f"{scratch}/strace.out"]
    return {
        "untraced": [],
        "untraced again": [],
        **of_onbeat,
        "perf trace -s": ["perf", "trace", "-s", "-o", f"{scratch}/perf.out"],
        "strace, the same calls": strace + ["--seccomp-bpf", f"--trace={CALLS}"],
        "strace -c -f": strace + ["-c"],
    }


def one_run(tracer, command):
    """CPU seconds of the transcode (its own account), wall-clock seconds of the whole, and of the tracer with
    a program that does nothing."""
    began = time.monotonic()
    done = finished(tracer + command)
    wall = time.monotonic() - began
    told = re.search(r"bench: utime=([\d.]+)s stime=([\d.]+)s", done.stderr)
    if done.returncode != 0 or not told:
        sys.exit(f"'{' '.join(tracer + command)}' failed:\n{done.stderr[-2000:]}")
    began = time.monotonic()
    finished([*tracer, "true"])
    return {"cpu_s": float(told[1]) + float(told[2]), "wall_s": wall, "start_s": time.monotonic() - began}


def interval_of_median(values, draws=4000):
    """The 95% bootstrap interval of the median; seeded, so that a figure can be had again."""
    rng = random.Random(1)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(draws)
    )
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def paired_runs(options, scratch, film):
    kinds = tracers(options, scratch)
    rounds = []
    for number in range(options.rounds):
        names = list(kinds)
        turn = number % len(names)
        rounds.append({n: one_run(kinds[n], transcode(film)) for n in names[turn:] + names[:turn]})
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    rows = []
    for name in kinds:
        row = {"tracer": name}
        for unit in ["cpu_s", "wall_s"]:
            slower = [100 * (r[name][unit] / r["untraced"][unit] - 1) for r in rounds]
            low, high = interval_of_median(slower)
            row[unit] = statistics.median(r[name][unit] for r in rounds)
            row[unit.replace("_s", "_slower_percent")] = statistics.median(slower)
            row[unit.replace("_s", "_slower_percent_95")] = [low, high]
        started = [1000 * (r[name]["start_s"] - r["untraced"]["start_s"]) for r in rounds]
        row["start_ms"] = statistics.median(started)
        rows.append(row)
    return rounds, rows


def programs_of(pid):
    """The numbers of the BPF programs that a process keeps attached, as its links tell."""
    numbers = set()
    for link in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        numbers.update(int(n) for n in re.findall(r"^prog_id:\s*(\d+)", link.read_text(), re.M))
    return numbers


def counted(numbers):
    """Run time and invocations up to now, by program."""
    told = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, check=True)
    return {
        p["name"]: (p.get("run_time_ns", 0), p.get("run_cnt", 0))
        for p in json.loads(told.stdout)
        if p["id"] in numbers and p["name"] in PROGRAMS
    }


def invocations(options, scratch, what, command):
    """Run time per invocation while onbeat traces `command`, in windows of a quarter second."""
    traced = recording(options, "bpf", f"{scratch}/bpf.rec") + command
    with running(traced, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as onbeat:
        time.sleep(1)
        numbers = programs_of(onbeat.pid)
        windows = [counted(numbers)]
        began = time.monotonic()
        while time.monotonic() - began < options.watch:
            time.sleep(0.25)
            windows.append(counted(numbers))
        lasted = time.monotonic() - began
    rows = []
    for name in PROGRAMS:
        means = []
        for before, after in zip(windows, windows[1:]):
            runs = after[name][1] - before[name][1]
            if runs:
                means.append((after[name][0] - before[name][0]) / runs)
        spent = windows[-1][name][0] - windows[0][name][0]
        runs = windows[-1][name][1] - windows[0][name][1]
        if means:
            rows.append(
                {
                    "while": what,
                    "program": name,
                    "median_ns": statistics.median(means),
                    "mean_ns": spent / runs,
                    "invocations_per_s": runs / lasted,
                    "share_of_one_cpu_percent": spent / lasted / 1e7,
                }
            )
    return rows


def markdown(result):
    lines = [result["machine"], ""]
    lines += ["| while | BPF program | median ns | mean ns | per second | of one CPU |"]
    lines += ["|---|---|---:|---:|---:|---:|"]
    for row in result["invocations"]:
        lines.append(
            f"| {row['while']} | {row['program']} | {row['median_ns']:.0f} | {row['mean_ns']:.0f} "
            f"| {row['invocations_per_s']:.0f} | {row['share_of_one_cpu_percent']:.3f}% |"
        )
    lines += ["", "| tracer | CPU s | CPU slower | 95% | wall s | wall slower | 95% | start, end | paper |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for row in result["transcodes"]:
        cells = [row["tracer"]]
        for unit in ["cpu", "wall"]:
            low, high = row[f"{unit}_slower_percent_95"]
            cells.append(f"{row[f'{unit}_s']:.2f}")
            cells.append(f"{row[f'{unit}_slower_percent']:+.2f}%")
            cells.append(f"{low:+.2f} to {high:+.2f}%")
        cells.append(f"{row['start_ms']:.0f} ms")
        paper = PAPER.get(row["tracer"])
        cells.append(f"{paper[1]}% {paper[0]}" if paper else "")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *accuracy.markdown(result["accuracy"])]
    return "\n".join(lines) + "\n"


def main():
    options = arguments()
    end_in_order()
    check(options)
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        film = pathlib.Path(scratch) / "film.mp4"
        make_film(film, options.film)
        before = STATS.read_text()
        STATS.write_text("1")
        try:
            rows = invocations(options, scratch, "ffmpeg transcodes", transcode(film, endless=True))
            rows += invocations(options, scratch, "a tracked task sleeps", ["sleep", "1000"])
        finally:
            STATS.write_text(before)
        rounds, transcodes = paired_runs(options, scratch, film)
        found = accuracy.measure(options, scratch, kinds_of_onbeat(options), recording)
    kernel = os.uname()
    result = {
        "machine": f"Linux {kernel.release}, {kernel.machine}, {os.cpu_count()} CPUs; {options.rounds} rounds, "
        f"{options.film} s of film, {options.play} s of play; {datetime.date.today()}.",
        "invocations": rows,
        "transcodes": transcodes,
        "rounds": rounds,
        "accuracy": found,
    }
    (out / "tracer-overhead.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "tracer-overhead.md").write_text(markdown(result))
    if options.readme:
        tables.replace("measured live", markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
