"""What each tracer makes of a player's period, and what it does to the player.

A player of 25 frames a second is heard by two tracers at once: the one in question, and BPF around both. So what the
one finds can be compared with what there was to be found in the same run, and that with what BPF finds in a player
that nobody else traces.
"""

import contextlib
import json
import statistics
import sys
import time

from programs import finished, running

PERIOD_NS = 40_000_000
# As in the experiments on detection: a period is right if it is within this of the true one.
RIGHT = 0.01
# Hogs beside the player.
LOADS = [0, 4]
# The film is so much longer than is judged, for what a player does before its first frame is no rhythm.
START_S = 2


def make_film(path, seconds):
    finished(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"]
        + ["-t", str(seconds), "-c:v", "mpeg4", "-q:v", "5", "-bf", "0", str(path)]
    ).check_returncode()


def player(film):
    """mplayer without window and sound; it keeps to the film's rate all the same."""
    return ["mplayer", "-vo", "null", "-nosound", "-really-quiet", "-noconsolecontrols", "-nolirc", str(film)]


def windows(options, recorded):
    """What was found in each of the last seconds of a recording of the player, in ns; None for no period."""
    told = finished([options.onbeat, "analyze", "--json", "--window", "1s", str(recorded)])
    told.check_returncode()
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    lines = [line for line in lines if line["comm"] == "mplayer" and line["complete"]]
    if not lines:
        return []
    tids = [line["tid"] for line in lines]
    of_first = [line for line in lines if line["tid"] == max(set(tids), key=tids.count)]
    return [line["period_ns"] for line in of_first][-options.play :]


def judged(periods):
    errors = [abs(period / PERIOD_NS - 1) for period in periods if period]
    right = [error for error in errors if error <= RIGHT]
    return {
        "windows": len(periods),
        "right": len(right) / max(1, len(periods)),
        "none": periods.count(None) / max(1, len(periods)),
        "median_error": statistics.median(errors) if errors else None,
    }


def heard(options, scratch, kind, recording, film):
    """The player under the tracer `kind`, inside BPF's; only in BPF's for none."""
    around, inside = f"{scratch}/around.rec", f"{scratch}/inside.rec"
    outer = [options.onbeat, "record", "--quiet", "--tracer", "bpf", "--children", "-o", around, "--"]
    inner = recording(options, kind, inside) if kind else []
    done = finished(outer + inner + player(film))
    if done.returncode != 0:
        sys.exit(f"a player heard by {kind or 'bpf'} failed:\n{done.stderr[-2000:]}")
    row = {"same_run_by_bpf": judged(windows(options, around))}
    if kind:
        row["by_it"] = judged(windows(options, inside))
    return row


def measure(options, scratch, kinds, recording):
    film = f"{scratch}/play.avi"
    make_film(film, options.play + START_S)
    rows = []
    for load in LOADS:
        hogs = running(["stress-ng", "--cpu", str(load), "--quiet"])
        with hogs if load else contextlib.nullcontext():
            time.sleep(0.5 if load else 0)
            for kind in [None, *kinds]:
                row = heard(options, scratch, kind, recording, film)
                rows.append({"tracer": kind or "none", "hogs": load, **row})
                print(f"a player heard by {kind or 'nobody else'}, {load} hogs", file=sys.stderr)
    return rows


def cells(of):
    if not of:
        return ["", "", ""]
    error = of["median_error"]
    return [
        f"{of['right']:.0%} of {of['windows']}",
        f"{of['none']:.0%}",
        "-" if error is None else f"{error:.3%}",
    ]


def markdown(rows):
    lines = ["| tracer | hogs | right, by it | none | median error | right, by BPF in the same run | none | median error |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        both = cells(row.get("by_it")) + cells(row["same_run_by_bpf"])
        lines.append("| " + " | ".join([row["tracer"], str(row["hogs"]), *both]) + " |")
    return lines
