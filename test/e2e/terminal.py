"""Runs a command in a terminal of its own: `terminal.py ROWS COLUMNS COMMAND...`.

Standard input is typed into it; what it prints comes out. Ends with the command's exit code.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios

rows, columns = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
sources = [terminal, 0]
while terminal in sources:
    for ready in select.select(sources, [], [])[0]:
        try:
            data = os.read(ready, 65536)
        except OSError:
            data = b""
        if data == b"":
            sources.remove(ready)
        elif ready == terminal:
            os.write(1, data)
        else:
            os.write(terminal, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
