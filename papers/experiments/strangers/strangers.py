#!/usr/bin/env python3
"""Runs strangers' programs, idle and beside hogs, by nothing, `chrt -r 1` and onbeat; README.md says more."""

import argparse
import ctypes
import datetime
import json
import os
import platform
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "strangers"
CHANGES = {"reserved", "changed", "boosted", "boost-changed"}
END = "<!-- end -->"
GROUPS = ("/sys/fs/cgroup/strangers", "/sys/fs/cgroup/cpu/strangers")
FIGURES = ("count", "p99_ms", "dsp")
# A way's name in the table, and what starts a program by it.
PLAIN = {"nothing": ("nothing", []), "nice": ("nice -n -20", ["nice", "-n", "-20"]), "chrt": ("chrt -r 1", ["chrt", "-r", "1"]),
         "service": ("service", []), "weight": ("cpu.weight 10000", [str(HERE / "weight.sh")]), "slice": ("a slice of 0.1 ms", [sys.executable, str(HERE / "slice.py")])}
# What runs beside a program: so many of this for each CPU. `two` also has a transcode that is started by the same way,
# and `onset` has hogs that begin when a program that is there for 4 s is in the middle.
HOG = "ulimit -t 60; while :; do :; done"
COMPILER = "while :; do printf '#include <regex>\nstd::regex r(\"(a|b)*\");' | g++ -O2 -x c++ -S -o /dev/null -; done"
BESIDE = {"idle": None, "hogs": HOG, "two": HOG, "build": COMPILER, "onset": f"sleep 3; {HOG}"}
EACH = 4
SETS = {file.stem: file for file in HERE.glob("sets/*.sh")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", help="these, with commas between them, also if they are held back [default: all that are not]")
    parser.add_argument("--set", help=f"only those of {', '.join(sorted(SETS))}")
    parser.add_argument("--held-back", action="store_true", help="also those that are held back")
    parser.add_argument("--situations", default="idle,hogs", help=f"some of {','.join(BESIDE)} [default: %(default)s]")
    parser.add_argument("--ways", default="nothing,chrt", help=f"without onbeat: some of {','.join(PLAIN)} [default: %(default)s]")
    parser.add_argument("--seconds", type=int, default=3, help="of each program in each cell, after its start")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", default="target/release/onbeat")
    parser.add_argument("--onbeat", action="append", metavar="LABEL=ARGS", help="a variant of onbeat's flags; may be given several times [default: onbeat=]")
    parser.add_argument("--resume", action="store_true", help="go on after the last cell in the file of results")
    parser.add_argument("--table", action="store_true", help="run nothing: the table of the cells in the file of results")
    parser.add_argument("--results", type=Path, action="append", help="the cells, one a line [default: strangers.jsonl in out/strangers; of a set, SET.jsonl here]; further files are read, too")
    parser.add_argument("--readme", type=Path, help="write the table into this file, too")
    parser.add_argument("--summary", type=Path, help="write the worst and the median of each way beside hogs into this file")
    options = parser.parse_args()
    options.results = options.results or [HERE / f"{options.set}.jsonl" if options.set else OUT / "strangers.jsonl"]
    return options


class Program:
    """A line `#: NAME | title | what is counted | runtime [| held back] [| SET]...` of programs.sh, or of a set."""

    def __init__(self, line):
        words = [word.strip() for word in line[2:].split("|")]
        self.name, self.title, self.counts, self.runtime = words[:4]
        self.held_back = "held back" in words
        self.sets = words[4:]


def chosen(options):
    files = [HERE / "programs.sh", *(SETS.values() if options.table else [SETS[options.set]] if options.set in SETS else [])]
    programs = [Program(line) for file in files for line in open(file, encoding="utf-8") if line.startswith("#: ")]
    if options.set:
        programs = [one for one in programs if options.set in one.sets]
    if not options.programs:
        return [one for one in programs if options.set or options.held_back or not one.held_back]
    names = options.programs.split(",")
    if unknown := set(names) - {one.name for one in programs}:
        sys.exit(f"unknown: {' '.join(sorted(unknown))}; there are: {' '.join(one.name for one in programs)}")
    return [one for one in programs if one.name in names]


def ways_of(options):
    """Label and command that a program is started with."""
    binary = os.path.abspath(options.binary)
    for given, known in ((options.ways, PLAIN), (options.situations, BESIDE)):
        if unknown := set(given.split(",")) - set(known):
            sys.exit(f"unknown: {' '.join(sorted(unknown))}; there are: {' '.join(known)}")
    ways = dict(PLAIN[way] for way in options.ways.split(","))
    if ways.pop("service", None) is not None:
        ways["the service"] = [str(HERE / "serve.sh"), binary]
    for variant in options.onbeat or ["onbeat="]:
        label, _, flags = variant.partition("=")
        ways[label] = [binary, "run", "--quiet", "--children", "--log", "LOG", *shlex.split(flags), "--"]
    if not os.access(binary, os.X_OK):
        sys.exit(f"no {binary}: make build, or --binary")
    return ways


def descendants():
    """Of this process, which inherits orphans, so none escapes."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    below, found = {os.getpid()}, set()
    while new := {pid for pid, parent in parents.items() if parent in below} - found:
        found |= new
        below = new
    return found


def end_all(but=()):
    """Ends what was started here; onbeat has two seconds to put back what it changed."""
    for number, tries in ((signal.SIGTERM, 40), (signal.SIGKILL, 40)):
        for pid in descendants() - set(but):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        for _ in range(tries):
            if not descendants() - set(but):
                break
            time.sleep(0.05)
    reap(but)


def reap(but=()):
    try:
        while (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and info.si_pid not in but:
            os.waitpid(info.si_pid, 0)
    except ChildProcessError:
        pass


def before_all():
    """What starts and ends programs does not wait for hogs; its children have the default scheduling."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2))


class Machine:
    """What all cells share: a display, films, and the place for what is built."""

    def __init__(self, options):
        self.options = options
        OUT.mkdir(parents=True, exist_ok=True)
        self.run = tempfile.mkdtemp(prefix="strangers-")
        self.env = dict(os.environ, CACHE=str(OUT), SECONDS_TO_RUN=str(options.seconds), XDG_RUNTIME_DIR=self.run, LC_ALL="C.UTF-8")
        for name in ("DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY"):
            self.env.pop(name, None)
        subprocess.run(["gcc", "-O2", "-o", OUT / "frames", HERE / "frames.c", "-lX11", "-lXdamage"], check=True)
        self.films()
        self.hogs = []
        read, write = os.pipe()
        self.display = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset"],
                                        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=os.setpgrp)
        os.close(write)
        self.env["DISPLAY"] = ":" + os.read(read, 16).decode().strip()

    def films(self):
        film, small = OUT / "film.mkv", OUT / "film720.mkv"
        if not film.exists() or not small.exists():
            print("making films", flush=True)
            x264 = ["-c:v", "libx264", "-preset", "superfast", "-pix_fmt", "yuv420p"]
            ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-y"]
            subprocess.run([*ffmpeg, "-f", "lavfi", "-i", "mandelbrot=s=1920x1080:r=25", "-f", "lavfi", "-i", "sine", "-t", "12", *x264, "-b:v", "16M", film], check=True)
            subprocess.run([*ffmpeg, "-i", film, "-vf", "scale=1280:720", *x264, "-b:v", "6M", small], check=True)

    def script(self, program, what, prefix=()):
        """Runs a program's script; gives its figures."""
        work = tempfile.mkdtemp(prefix=f"strangers-{program.name}-")
        log = f"{work}.log"
        prefix = [log if word == "LOG" else word for word in prefix]
        said, error = b"", ""
        try:
            with subprocess.Popen([HERE / "programs.sh", program.name, what, *prefix], env=dict(self.env, WORK=work), cwd=work, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: (os.setpgrp(), before_all())) as script:
                try:
                    said, told = script.communicate(timeout=self.options.seconds + (25 if what == "run" else 600))
                    error = " ".join(told.decode(errors="replace").split())[-150:]
                except subprocess.TimeoutExpired:
                    script.kill()
                    error = "it did not end"
                end_all(but=self.kept())
            figures = {}
            for line in said.decode(errors="replace").splitlines():
                key, _, value = line.partition(" ")
                figures[key] = float(value) if key in FIGURES else value
            if what == "run" and "count" not in figures or script.returncode and what == "prepare":
                figures = {"failed": " ".join([said.decode(errors="replace").strip(), error]).strip() or f"exit status {script.returncode}"}
            if os.path.exists(log):
                changes = [json.loads(line) for line in open(log, encoding="utf-8")]
                changes = [one for one in changes if one["what"] in CHANGES]
                figures.update(threads=len({one["tid"] for one in changes}), changes=len(changes))
                os.unlink(log)
            return figures
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def kept(self):
        return {self.display.pid, *(hog.pid for hog in self.hogs)}

    def cell(self, program, situation, prefix):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if hog := BESIDE[situation]:
            self.hogs = [subprocess.Popen(["sh", "-c", hog], **quiet) for _ in range(EACH * os.cpu_count())]
            self.env["HOGS"] = " ".join(str(hog.pid) for hog in self.hogs)
        if situation == "two":
            transcode = ["ffmpeg", "-nostdin", "-stream_loop", "-1", "-i", OUT / "film.mkv", "-c:v", "libx264", "-f", "null", "-"]
            self.hogs.append(subprocess.Popen([*("/dev/null" if word == "LOG" else word for word in prefix), *transcode], **quiet))
        time.sleep(0.3 if self.hogs else 0)
        try:
            return self.script(program, "run", prefix)
        finally:
            self.hogs = []
            self.env.pop("HOGS", None)
            end_all(but=self.kept())

    def close(self):
        end_all()
        for group in filter(os.path.isdir, GROUPS):
            os.rmdir(group)
        shutil.rmtree(self.run, ignore_errors=True)


def run(options, programs, ways):
    situations = options.situations.split(",")
    results = read_results(options) if options.resume else []
    done = {(one["round"], one["program"], one["situation"], one["way"]) for one in results}
    cells = [(number, program, situation, way) for number in range(options.rounds) for program in programs
             for situation in situations for way in turned(list(ways), number)]
    left = [cell for cell in cells if (cell[0], cell[1].name, cell[2], cell[3]) not in done]
    if not left:
        return
    about = {"commit": output("git", "-C", str(HERE), "describe", "--always", "--dirty"), "kernel": platform.release(), "cpus": os.cpu_count(),
             "load": round(os.getloadavg()[0], 2), "seconds": options.seconds}
    machine, impossible = Machine(options), {}
    options.results[0].parent.mkdir(parents=True, exist_ok=True)
    with open(options.results[0], "a" if options.resume else "w", encoding="utf-8") as file:
        try:
            for program in dict.fromkeys(cell[1] for cell in left):
                if reason := machine.script(program, "prepare").get("failed"):
                    impossible[program.name] = reason
                    print(f"{program.name}: {reason}", flush=True)
            began = time.monotonic()
            for k, (number, program, situation, way) in enumerate(left):
                reason = impossible.get(program.name)
                figures = {"failed": reason} if reason else machine.cell(program, situation, ways[way])
                one = {"round": number, "program": program.name, "situation": situation, "way": way, "at": int(time.time()), **about, **figures}
                file.write(json.dumps(one) + "\n")
                file.flush()
                minutes = (time.monotonic() - began) / (k + 1) * (len(left) - k - 1) / 60
                told = figures.get("failed") or " ".join(f"{key} {value:g}" if isinstance(value, (int, float)) else f"{key} {value}" for key, value in figures.items())
                print(f"{k + 1}/{len(left)} {program.name}, {situation}, {way}: {told}; {minutes:.0f} min left", flush=True)
        finally:
            machine.close()


def turned(ways, number):
    return ways[number % len(ways):] + ways[:number % len(ways)]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def read_results(options):
    return [json.loads(line) for file in options.results for line in open(file, encoding="utf-8")]


def values(results, column, key):
    return [one[key] for one in results if (one["situation"], one["way"]) == column and key in one]


def about(results):
    last, rounds = results[-1], 1 + max(one["round"] for one in results)
    return (f"{rounds} round{'s' if rounds > 1 else ''} of {last['seconds']} s; {last['cpus']} CPUs, Linux {last['kernel']}, "
            f"commit {last['commit']}, {datetime.date.fromtimestamp(last['at'])}")


def table(options, programs, ways):
    results = read_results(options)
    columns = [(situation, way) for situation in options.situations.split(",") for way in ways]
    columns = [column for column in columns if values(results, column, "count")]
    lines = [f"Medians of {about(results)}, load before {results[0]['load']}. A cell has the figures with least and greatest, and each "
             "one's ratio to the first column.", "",
             "| program | figures | " + " | ".join(f"{situation}, {way}" for situation, way in columns) + " | changed, idle |",
             "|---|---|" + "---:|" * (len(columns) + 1)]
    worst, notes = {}, []
    for program in programs:
        mine = [one for one in results if one["program"] == program.name]
        changed = [[one for one in mine if (one["situation"], one["way"]) == ("idle", way) and "threads" in one] for way in ways]
        names, rows = [], []
        for key, name in zip(FIGURES, (program.counts, "p99, ms", "DSP load, %")):
            cells, base = [], None
            for column in columns:
                found = values(mine, column, key)
                if not found:
                    cells.append("-")
                    continue
                median = statistics.median(found)
                text = f"{median:g}" + (f" ({min(found):g}-{max(found):g})" if len(found) > 1 else "")
                if base is None:
                    base = median
                elif base:
                    ratio = median / base
                    text += f" {ratio:.2f}"
                    worst.setdefault((key, column), []).append((ratio, program.name))
                cells.append(text)
            if any(cell != "-" for cell in cells):
                names.append(name)
                rows.append(cells)
        if rows:
            title = f"{program.title}{' (held back)' if program.held_back else ''}"
            shown = " / ".join(f"{least_to_most(some, 'threads')} ({least_to_most(some, 'changes')})" for some in changed if some)
            joined = ["-" if set(cells) == {"-"} else "; ".join(cells) for cells in zip(*rows)]
            lines.append(f"| {title} | {'; '.join(names)} | " + " | ".join(joined) + f" | {shown} |")
        said = {}
        for one in mine:
            for what in {"failed", "note"} & one.keys():
                if not one[what].startswith("skipped"):
                    said.setdefault(f"{what}: {one[what]}", []).append(f"{one['situation']} {one['way']}")
        notes += [f"- {program.name}, {text} ({', '.join(f'{cell} {cells.count(cell)}x' for cell in dict.fromkeys(cells))})" for text, cells in said.items()]
    for key, name, which in (("count", "least count", min), ("p99_ms", "greatest p99", max)):
        cells = [which(worst[key, column]) if (key, column) in worst else None for column in columns]
        lines.append(f"| **worst ratio** | {name} | " + " | ".join(f"**{cell[0]:.2f}** {cell[1]}" if cell else "-" for cell in cells) + " | |")
    return "\n".join(lines + [""] + notes).strip() + "\n"


def summary(options, programs, ways):
    """Of each way beside hogs: the worst program and the median of all, as ratios to idle and by nothing."""
    results = read_results(options)
    of_each = [(program.name, [one for one in results if one["program"] == program.name]) for program in programs]
    lines = ["| beside hogs, by | programs | events: worst | median | p99: worst | median |", "|---|---:|---:|---:|---:|---:|"]
    for way in ways:
        cells = []
        for key, which in (("count", min), ("p99_ms", max)):
            both = [(name, values(mine, ("idle", "nothing"), key), values(mine, ("hogs", way), key)) for name, mine in of_each]
            ratios = [(statistics.median(found) / statistics.median(idle), name) for name, idle, found in both if idle and found]
            if ratios:
                cells += [*([len(ratios)] if key == "count" else []), f"{which(ratios)[0]:.2f} ({which(ratios)[1]})", f"{statistics.median(ratio for ratio, _ in ratios):.2f}"]
        lines.append(f"| {way} | " + " | ".join(str(cell) for cell in cells or ["-"] * 5) + " |")
    return "\n".join(lines) + f"\n\n{about(results)}.\n"


def write(readme, begin, text):
    before, _, rest = readme.read_text(encoding="utf-8").partition(begin)
    readme.write_text(f"{before}{begin}\n{text}{END}{rest.partition(END)[2]}", encoding="utf-8")


def least_to_most(results, key):
    values = sorted({one[key] for one in results})
    return "-".join(f"{value:g}" for value in dict.fromkeys([values[0], values[-1]]))


def main():
    options = arguments()
    programs, ways = chosen(options), ways_of(options)
    if os.geteuid() != 0:
        sys.exit("needs root")
    # Orphans of the programs become children of this process.
    ctypes.CDLL(None).prctl(36, 1)
    before_all()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not options.table:
        run(options, programs, ways)
    text = table(options, programs, ways)
    print(text)
    if options.readme:
        write(options.readme, f"<!-- {options.results[0].stem.split('-')[0]} -->", text)
    if options.summary:
        write(options.summary, "<!-- strangers, summary -->", summary(options, programs, ways))


main()
