#!/usr/bin/env python3
"""Records the execution time of each job of five codecs, at the periods of GRACE-OS (Table 2).

A pipe that is served once in each period holds a codec to its pace, and `onbeat record` watches it. The material is made of
ffmpeg's own sources with fixed seeds, once; the same version makes the same bytes.

usage: record.py [--runs N] [--out DIR] [CODEC...], as root; writes CODEC.csv."""

import argparse
import datetime
import fcntl
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "onbeat"
# The film's pictures: H.263's largest, so that a decoder of today has as much to do in 30 ms as the paper's had with 320x240
# on a processor of 1 GHz. Played, it gets the paper's 30 ms for each.
WIDTH, HEIGHT, RATE, SCENE = 1408, 1152, 30, 170
# The bytes of a job: a picture with two colour samples for four pixels; a frame of MP3 in two channels; a frame of GSM.
PICTURE, SOUND, SPEECH = WIDTH * HEIGHT * 3 // 2, 1152 * 2 * 2, 160 * 2
# The first jobs are not counted: the program fills its buffers, and caches are cold.
WARM_UP = 20

DECODE = "ffmpeg -loglevel error -nostdin -threads 1 -filter_threads 1 -i {} -threads 1 -f rawvideo -"
# As thorough as it can be, like the encoder of the paper, which tries every motion.
ENCODE = (
    f"ffmpeg -loglevel error -nostdin -f rawvideo -pix_fmt yuv420p -video_size {WIDTH}x{HEIGHT} -framerate 30 -i pipe:0"
    " -filter_threads 1 -threads 1 -c:v h263 -q:v 4 -g 60 -mbd rd -trellis 2 -cmp rd -subcmp rd -mbcmp rd -f null -"
)
# Period in ms, jobs, material, bytes of a job, and the program, which reads the material's file ({}) or its standard input.
CODECS = {
    "mpeg1-decode": (30, 3000, "film-mpeg1.avi", PICTURE, DECODE),
    # Unbuffered, so that it writes one frame at a time.
    "mp3-decode": (30, 1000, "sound.mp3", SOUND, "stdbuf -o0 madplay -Q -o raw:- {}"),
    "h263-encode": (400, 300, "film-h263.avi", PICTURE, ENCODE),
    "h263-decode": (30, 1000, "film-h263.avi", PICTURE, DECODE),
    "gsm-encode": (25, 2000, "speech.raw", SPEECH, "toast -l -c"),
}

TEXT = (
    "A scheduler decides who runs and for how long. A film needs a picture every thirty milliseconds and does not care how "
    "early it is ready. Speech comes in frames of twenty milliseconds. Most of them are alike, some are silent, and hardly "
    "any takes twice as long as another. Whoever plans for the longest wastes what the others leave."
)


def film(grain):
    """18 scenes: six kinds, three times, each time others; all with the grain of a film, which makes them the more alike the
    coarser it is."""
    size = "size={}x{}:rate=%d" % RATE
    # Slow sources are made small and enlarged.
    full, half, quarter = (size.format(WIDTH // n, HEIGHT // n) for n in [1, 2, 4])
    scenes, names = "", ""
    for turn, rule in enumerate([18, 110, 30]):
        seed, first = 7 + turn, f"trim=end_frame={SCENE}"
        turned = f"trim=start_frame={600 * turn}:end_frame={600 * turn + SCENE}"
        kinds = [
            f"testsrc2={full},{turned}",
            f"mandelbrot={half}:start_scale={3 - turn}:end_scale=0.001:end_pts=400,{first}",
            f"gradients={full}:seed={seed}:speed=0.02,{first}",
            f"life={quarter}:seed={seed}:mold=10:ratio=0.1:death_color=#405060:life_color=#90b090,{first}",
            f"testsrc2={full},{turned},hflip,hue=s=0.5",
            f"cellauto={half}:seed={seed}:rule={rule},{first},eq=contrast=0.2",
        ]
        for kind, source in enumerate(kinds):
            name = f"[scene{turn}{kind}]"
            scenes += f"{source},setpts=PTS-STARTPTS,format=yuv420p,scale={WIDTH}:{HEIGHT},setsar=1{name};"
            names += name
    return f"{scenes}{names}concat=n=18,noise=alls={grain}:allf=t[all]"


def speech(rate, channels):
    """The text by several voices, one after the other."""
    voices = ["slt", "kal16", "awb", "rms"]
    each = f"aformat=sample_fmts=s16:sample_rates={rate}:channel_layouts={channels}"
    spoken = "".join(f"flite=voice={voice}:text='{TEXT}',{each}[{voice}];" for voice in voices)
    return spoken + "".join(f"[{voice}]" for voice in voices) + f"concat=n={len(voices)}:v=0:a=1"


def sound():
    """Music: two voices, a chord whose root changes twice a second, drums, and now and then speech."""
    voice = "0.15*sin(2*PI*{}*(220*pow(2,mod(floor(2*t)*5,12)/12))*t)"
    chord, melody = f"{voice.format(1)}+{voice.format(1.5)}", f"{voice.format(3)}*(1-mod(4*t,1))"
    return (
        f"aevalsrc='{chord}+{melody}|{chord}':sample_rate=44100[music];"
        "anoisesrc=color=white:seed=7:sample_rate=44100:amplitude=0.3,volume='exp(-12*mod(t,0.5))':eval=frame[drums];"
        f"{speech(44100, 'stereo')}[said];[music][drums][said]amix=inputs=3,atrim=duration=32[all]"
    )


def material(name):
    """The file of this name, from the cache if it was made before."""
    graph, options = {
        "film-mpeg1.avi": (film(12), "-c:v mpeg1video -q:v 5 -bf 2 -g 12"),
        "film-h263.avi": (film(4), "-c:v h263 -q:v 5 -g 60"),
        "sound.mp3": (sound(), "-c:a libmp3lame -q:a 4"),
        "speech.raw": (speech(8000, "mono") + "[all]", "-f s16le"),
    }[name]
    path = CACHE / f"demands-4-{name}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"making {path}, once", file=sys.stderr)
        unfinished = path.with_name(f"unfinished-{path.name}")
        made = ["ffmpeg", "-loglevel", "error", "-nostdin", "-y", "-filter_complex", graph, "-map", "[all]", "-threads", "1"]
        subprocess.run([*made, "-bitexact", *options.split(), unfinished], check=True)
        unfinished.rename(path)
    return path


def pictures(path):
    """Every third picture of the film, uncompressed, for an encoder that takes its time."""
    words = f"ffmpeg -loglevel error -nostdin -threads 1 -i {path} -r 10 -f rawvideo -".split()
    return subprocess.Popen(words, stdout=subprocess.PIPE).stdout


def exactly(source, count):
    taken = source.read(count)
    if len(taken) < count:
        sys.exit("the material or the program ended too early")
    return taken


def served(pipe, source, length, count, period):
    """Serves `count` jobs: writes the `length` bytes of each from `source`, or reads them if there is none. When each was
    released, and the end of the last one's period, in ns."""

    def serve(job):
        pipe.write(job) if source else exactly(pipe, length)

    def wait_until(at):
        time.sleep(max(0, at - time.monotonic_ns()) / 1e9)

    serve(source and exactly(source, length))
    # A program that reads has started when it has taken what was written.
    while source and fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4) != b"\0" * 4:
        time.sleep(0.02)
    following, releases = time.monotonic_ns() + period, []
    for _ in range(count):
        job = source and exactly(source, length)
        wait_until(following)
        releases.append(time.monotonic_ns())
        # The next one is a whole period after a late one, too.
        following = releases[-1] + period
        serve(job)
    wait_until(following)
    return [*releases, time.monotonic_ns()]


def bursts(recording):
    """Those of the program's first thread, which does the work of all five."""
    first, found = None, []
    for line in recording.read_text().splitlines():
        event = json.loads(line)
        if event.get("lost"):
            sys.exit("the sensor lost events: record it again")
        if event.get("event") == "tracked" and event["tid"] == event["pid"] and first is None:
            first = event["tid"]
        if event.get("event") == "burst" and event["tid"] == first:
            found.append((event["woke_ns"], event["blocked_ns"], event["executed_ns"]))
    return found


def cut(found, releases):
    """Adds up the bursts between each release and the next. A job that had not ended when the next one was released has a
    part of that one's work in its last burst: nothing is known of either."""
    jobs, ran_over = [], False
    for release, following in zip(releases, releases[1:]):
        own = [burst for burst in found if release <= burst[0] < following]
        executed, before = sum(burst[2] for burst in own), ran_over
        ran_over = bool(own) and own[-1][1] > following
        jobs.append(executed if executed and not ran_over and not before else None)
    return jobs


def played(onbeat, name):
    """The execution time of each job in one run."""
    period_ms, count, made_of, length, program = CODECS[name]
    path, is_fed = material(made_of), "{}" not in program
    reading, writing = os.pipe()
    # It holds less than two jobs: a power of two from a page on.
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << (min(max(length, 4096), 1 << 20).bit_length() - 1))
    with tempfile.TemporaryDirectory() as scratch:
        recording = pathlib.Path(scratch) / "recording"
        # At a real-time priority, so that a busy machine does not make jobs run into each other.
        words = [onbeat, "record", "--quiet", "-o", recording, "--", "chrt", "-f", "10"]
        ends = {"stdin": reading, "stdout": subprocess.DEVNULL} if is_fed else {"stdout": writing}
        process = subprocess.Popen([*words, *program.format(path).split()], start_new_session=True, **ends)
        try:
            os.close(reading if is_fed else writing)
            with os.fdopen(writing if is_fed else reading, "wb" if is_fed else "rb", 0 if is_fed else -1) as pipe:
                source = (pictures(path) if path.suffix == ".avi" else path.open("rb")) if is_fed else None
                releases = served(pipe, source, length, count + WARM_UP, period_ms * 1_000_000)
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
        return cut(bursts(recording), releases)[WARM_UP:]


def record(onbeat, name, runs, out):
    facts = {"load_before": pathlib.Path("/proc/loadavg").read_text().strip()}
    each = zip(*[played(onbeat, name) for _ in range(runs)])
    # All runs do the same work, and whatever disturbs one only makes it longer.
    shortest = [min((ns for ns in of_runs if ns), default=None) for of_runs in each]
    jobs = [ns for ns in shortest if ns]
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    facts = {
        "period_ns": CODECS[name][0] * 1_000_000,
        "jobs": len(jobs),
        "left_out": len(shortest) - len(jobs),
        "runs": runs,
        "cpu": cpuinfo.partition("model name\t: ")[2].partition("\n")[0],
        "kernel": os.uname().release,
        **facts,
        "date": datetime.date.today(),
        "ffmpeg": subprocess.check_output(["ffmpeg", "-version"], text=True).splitlines()[0],
    }
    head = "".join(f"# {fact}: {value}\n" for fact, value in facts.items())
    (out / f"{name}.csv").write_text(head + "demand_ns\n" + "".join(f"{ns}\n" for ns in jobs))
    parts = statistics.quantiles(jobs, n=20)
    ms = [f"{ns / 1e6:.3f}" for ns in [statistics.mean(jobs), parts[9], parts[18], max(jobs)]]
    print(f"| {name} | {len(jobs)} | {' | '.join(ms)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR", str(HERE.parents[2] / "target"))
    parser.add_argument("--onbeat", default=f"{target}/release/onbeat", help="onbeat's binary")
    parser.add_argument("--runs", type=int, default=2, help="how often each is played")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where the recordings go")
    parser.add_argument("codec", nargs="*", default=list(CODECS), help=", ".join(CODECS))
    options = parser.parse_args()
    print("| codec | jobs | mean ms | p50 | p95 | max |\n|---|---:|---:|---:|---:|---:|")
    for name in options.codec:
        record(options.onbeat, name, options.runs, options.out)


if __name__ == "__main__":
    main()
