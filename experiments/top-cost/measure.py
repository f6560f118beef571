#!/usr/bin/env python3
"""What `onbeat top` costs, and how soon a lock is on its screen. Run as root; see README.md."""

import argparse
import fcntl
import json
import os
import pty
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

SCHED_DEADLINE = 6
# "kept", also where the "e" of "refused" before it was left standing.
KEPT = re.compile(rb"kept|k\x1b\[[0-9;]*[HC]pt")
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={0}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/>
<allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>"""


def cpu_s(pid):
    """CPU time of a process with all its threads, in seconds."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        fields = stat.read().rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(what, condition, patience_s=60):
    """Polls until `condition` gives something."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.001)
    sys.exit(f"{what} did not come within {patience_s} s")


def is_reserved(pid):
    """Whether any thread of the process has a reservation."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            # Beside the policy: reset on fork.
            if os.sched_getscheduler(int(tid)) & 0xFFFF == SCHED_DEADLINE:
                return True
        except ProcessLookupError:
            pass
    return False


class Screen:
    """`onbeat top` on a terminal of its own."""

    def __init__(self, onbeat):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execv(onbeat, [onbeat, "top"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.set_blocking(self.terminal, False)

    def read(self):
        """What was written since."""
        written = b""
        try:
            while part := os.read(self.terminal, 65536):
                written += part
        except BlockingIOError:
            pass
        except OSError:
            sys.exit(f"onbeat top has ended: {written.decode(errors='replace')}")
        return written


class Service:
    """`onbeat daemon` on a bus of its own, and somebody who asks it."""

    def __init__(self, onbeat, asking, folder):
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={folder}/bus"
        for name, text in (("bus.conf", BUS.format(folder)), ("onbeat.toml", "")):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        self.bus = subprocess.Popen(["dbus-daemon", "--nofork", f"--config-file={folder}/bus.conf"])
        wait_for("the bus", lambda: os.path.exists(f"{folder}/bus"))
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            command = [onbeat, "daemon", f"--config={folder}/onbeat.toml"]
            self.daemon = subprocess.Popen(command + [f"--state-dir={folder}/state"], stderr=log)
        with open(f"{folder}/log", encoding="utf-8") as log:
            wait_for("the service", lambda: "serving" in log.read())
        self.client = subprocess.Popen([asking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.client.stdout.readline()

    def ask(self, line):
        """The answer to `line`."""
        self.client.stdin.write(line + "\n")
        self.client.stdin.flush()
        return self.client.stdout.readline()

    def reserved(self):
        """How many threads have a reservation."""
        time.sleep(0.2)
        return sum(one["runtime-ns"] > 0 for one in json.loads(self.ask("list")))

    def end(self):
        """Ends all of it."""
        for process in (self.client, self.daemon, self.bus):
            process.terminate()
            process.wait()


def latency_ms(service, screen, workload):
    """From when a thread has its reservation to when the screen says so."""
    program = subprocess.Popen([workload, "beat:20000/1000"], stdout=subprocess.DEVNULL)
    screen.read()
    service.ask(f"track {program.pid}")
    reserved = written = shown = None

    def look():
        nonlocal reserved, written, shown
        if reserved is None and is_reserved(program.pid):
            reserved = time.monotonic()
        written = (written or b"") + screen.read()
        if KEPT.search(written):
            shown = time.monotonic()
        return reserved and shown

    wait_for("a lock on the screen", look)
    service.ask(f"untrack {program.pid}")
    program.kill()
    program.wait()
    time.sleep(1)
    return (shown - reserved) * 1e3


def main():
    """Measures, and prints two lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="target/release", help="where cargo put onbeat and its examples")
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--locks", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    onbeat, asking, workload = (f"{options.target}/{name}" for name in ("onbeat", "examples/asking", "examples/workload"))
    with tempfile.TemporaryDirectory() as folder:
        service = Service(onbeat, asking, folder)
        screen = Screen(onbeat)
        beats = [f"beat:{20000 + number}/200" for number in range(options.threads)]
        program = None
        try:
            wait_for("the screen", screen.read)
            locks = [latency_ms(service, screen, workload) for _ in range(options.locks)]
            print(f"lock to screen: median {statistics.median(locks):.0f} ms, longest {max(locks):.0f} ms, of {len(locks)}")
            program = subprocess.Popen([workload, *beats], stdout=subprocess.DEVNULL)
            service.ask(f"track {program.pid}")
            end = time.monotonic() + 20
            while service.reserved() < options.threads and time.monotonic() < end:
                screen.read()
            before, since = [cpu_s(pid) for pid in (screen.pid, service.daemon.pid)], time.monotonic()
            while time.monotonic() - since < options.seconds:
                screen.read()
                time.sleep(0.05)
            over = time.monotonic() - since
            used = [cpu_s(pid) for pid in (screen.pid, service.daemon.pid)]
            top, daemon = ((after - start) / over * 100 for start, after in zip(before, used))
            print(f"{service.reserved()} of {options.threads} threads at 50 Hz reserved for: "
                  f"top {top:.1f}% of a CPU, the service {daemon:.1f}%")
        finally:
            os.kill(screen.pid, signal.SIGTERM)
            if program:
                program.kill()
                program.wait()
            service.end()


if __name__ == "__main__":
    main()
