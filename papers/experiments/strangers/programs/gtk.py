"""A window of 800x600 that is drawn anew at each frame of GDK's clock; tells when it was drawn."""
import math
import os
import time

import gi

gi.require_version("Gtk", "3.0")
gi.require_foreign("cairo")
from gi.repository import Gtk  # noqa: E402

times = []


def draw(_, cairo):
    times.append(time.monotonic() * 1000)
    cairo.set_source_rgb(0.1, 0.1, 0.2)
    cairo.paint()
    for i in range(100):
        cairo.set_source_rgb(i / 100, 0.5, 0.5)
        cairo.arc(400 + 300 * math.sin(i + len(times) / 40), 300 + 250 * math.cos(i * 1.3), 12, 0, 7)
        cairo.fill()
    if times[-1] - times[0] > float(os.environ["SECONDS_TO_RUN"]) * 1000:
        Gtk.main_quit()


area = Gtk.DrawingArea()
area.connect("draw", draw)
area.add_tick_callback(lambda *_: area.queue_draw() or True)
window = Gtk.Window(default_width=800, default_height=600)
window.add(area)
window.show_all()
Gtk.main()
print(*times)
