"""Works ARGV[1] ms every 10 ms, and ARGV[2] ms every eighth time. A release that passes meanwhile is
left out."""
import ctypes
import sys
import time

PERIOD_NS = 10_000_000
ABSOLUTE = 1


class Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]


usual, eighth = (int(ms) * 1_000_000 for ms in sys.argv[1:3])
libc = ctypes.CDLL(None)
release = time.monotonic_ns()
number = 0
while True:
    number += 1
    while release < time.monotonic_ns():
        release += PERIOD_NS
    until = Time(*divmod(release, 1_000_000_000))
    libc.clock_nanosleep(time.CLOCK_MONOTONIC, ABSOLUTE, ctypes.byref(until), None)
    work = eighth if number % 8 == 0 else usual
    end = time.thread_time_ns() + work
    while time.thread_time_ns() < end:
        pass
