"""A terminal in a box: what cloud sandboxes offer and our own contract does not. Sent into the box as text."""

from __future__ import annotations

from typing import Final

__all__ = ["TERMINAL"]

TERMINAL: Final = """
import fcntl, os, pty, select, struct, sys, termios
columns, rows, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
child, master = pty.fork()
if child == 0:
    os.execvp(argv[0], argv)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
os.set_blocking(master, False)
waiting = b""
poll = select.poll()
poll.register(0, select.POLLIN)
poll.register(master, select.POLLIN)
while True:
    for fd, event in poll.poll():
        if fd == 0:
            data = os.read(0, 65536)
            if not data:
                os._exit(0)
            waiting += data
            if len(waiting) > 65536:
                poll.unregister(0)
        elif event & ~select.POLLOUT:
            try:
                data = os.read(master, 65536)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
            while data:
                data = data[os.write(1, data):]
    while waiting:
        try:
            waiting = waiting[os.write(master, waiting):]
        except BlockingIOError:
            break
    poll.modify(master, select.POLLIN | (select.POLLOUT if waiting else 0))
    if len(waiting) <= 65536:
        poll.register(0, select.POLLIN)
"""
"""`python -c TERMINAL columns rows argv…`: the standard streams are the terminal's."""
