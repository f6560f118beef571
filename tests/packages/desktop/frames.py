# Starts a program and counts the frames that the display shows until it is stopped: those that the X server says were
# drawn (its DAMAGE extension), so neither the program nor its messages are believed.
#
# usage: frames.py SECONDS PROGRAM [ARGUMENT]...
import os
import pathlib
import subprocess
import sys
import time

from Xlib import display
from Xlib.ext import damage

PIXELS = 640 * 360
seconds, command = float(sys.argv[1]), sys.argv[2:]
connection = display.Display()
connection.damage_query_version()
connection.screen().root.damage_create(damage.DamageReportRawRectangles)
connection.sync()
# What was drawn before is told first.
while connection.pending_events():
    connection.next_event()
# The server waits for nobody who listens, and a late listener loses nothing.
began = time.monotonic()
program = subprocess.Popen(command)
drawn, frames = 0, []
while (left := began + seconds - time.monotonic()) > 0 and program.poll() is None:
    time.sleep(min(left, 0.5))
    while connection.pending_events():
        event = connection.next_event()
        if event.type != connection.extension_event.DamageNotify:
            continue
        drawn += event.area.width * event.area.height
        # Xlib sends a large picture in bands.
        if drawn * 100 >= PIXELS * 90:
            # The server's clock is CLOCK_MONOTONIC in milliseconds.
            frames.append(event.timestamp / 1000 - began)
            drawn = 0
ticks = pathlib.Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
used = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") / seconds
if program.poll() is not None:
    sys.exit(f"{command[0]} ended with {program.poll()}")
program.kill()
steady = sum(1 for at in frames if at >= 3)
first = f"{frames[0]:.1f} s" if frames else "never"
print(f"first {first}, all {len(frames)}, CPU time {100 * used:.0f}%, from the third second {steady}")
