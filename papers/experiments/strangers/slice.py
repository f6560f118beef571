"""Starts a command with a slice of 0.1 ms, which it and its children keep: `chrt -T 100000` of newer util-linux."""

import ctypes
import os
import struct
import sys

SCHED_SETATTR = 314  # of x86_64
attributes = struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 100_000, 0, 0)
if ctypes.CDLL(None, use_errno=True).syscall(SCHED_SETATTR, 0, attributes, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
