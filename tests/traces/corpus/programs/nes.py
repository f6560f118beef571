"""Writes a program for the NES that waits for ever, for emulators without a game.

usage: nes.py > FILE
"""

import sys

# iNES: one bank of 16 KiB of program, one of 8 KiB of pictures.
header = b"NES\x1a\x01\x01" + bytes(10)
# SEI, CLD, enable the picture, then jump to itself.
code = bytes([0x78, 0xD8, 0xA9, 0x1E, 0x8D, 0x01, 0x20, 0x4C, 0x07, 0xC0])
vectors = bytes([0x00, 0xC0, 0x00, 0xC0, 0x00, 0xC0])
sys.stdout.buffer.write(header + code.ljust(0x3FFA, b"\xea") + vectors + bytes(0x2000))
