"""Runs a command in a terminal of its own, and says what it did there: python3 pty.py ACTION COMMAND…

ACTION says what to do once a frame was seen: `q`, `ctrl-c`, `term` (the signal), or `resize` to a tiny one, and then `q`.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LEAVE = b"\x1b[?1049l"
ENTER = b"\x1b[?1049h"
SECONDS_MAX = 60


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def is_raw(terminal):
    return not termios.tcgetattr(terminal)[3] & termios.ICANON


def main():
    action, command = sys.argv[1], sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    resize(terminal, 40, 120)
    before = termios.tcgetattr(terminal)
    shown, was_raw, acted, ends = b"", False, 0, time.monotonic() + SECONDS_MAX
    resized = 0
    while time.monotonic() < ends:
        readable, _, _ = select.select([terminal], [], [], 0.1)
        if readable:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        if acted == 0 and b"checkpoints" in shown and b"faults:" in shown:
            was_raw = is_raw(terminal)
            acted = 1
            if action == "q":
                os.write(terminal, b"q")
            elif action == "ctrl-c":
                os.write(terminal, b"\x03")
            elif action == "term":
                os.kill(child, signal.SIGTERM)
        elif acted == 1 and action == "resize" and b"small" in shown[shown.rfind(b"checkpoints"):]:
            acted = 2
            os.write(terminal, b"q")
        # Again, in case the one before came while a frame was drawn.
        if acted == 1 and action == "resize" and time.monotonic() > resized + 2:
            resized = time.monotonic()
            resize(terminal, 3, 9)
            os.kill(child, signal.SIGWINCH)
    else:
        os.kill(child, signal.SIGKILL)
        print("it did not end")
    after = termios.tcgetattr(terminal)
    _, status = os.waitpid(child, 0)
    text = shown.decode(errors="replace")
    _, _, last = text.rpartition(LEAVE.decode())
    print("a frame was seen:", acted > 0)
    print("keys came as they were pressed:", was_raw)
    print("the screen was taken and given back:", shown.count(ENTER), shown.count(LEAVE))
    print("the cursor is shown:", text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"))
    print("the terminal is as it was:", after == before)
    print("reported below:", "interrupted" in last, "findings in" in last)
    print("exit code:", os.waitstatus_to_exitcode(status))


main()
