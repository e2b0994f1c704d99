"""Established connections whose every line must come back."""

from __future__ import annotations

import queue
import subprocess
import threading

# Serves both families on a port; ends with its stdin.
SERVER = """
import socket, sys, threading
def talk(connection):
    with connection:
        for line in connection.makefile("rb"):
            connection.sendall(line)
listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("up", flush=True)
def serve():
    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
sys.stdin.read()
"""
# Sends the lines of stdin to the server and prints those that come back.
CLIENT = """
import socket, sys, threading
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
connection.settimeout(None)
def back():
    for line in connection.makefile():
        print(line, end="", flush=True)
threading.Thread(target=back, daemon=True).start()
for line in sys.stdin:
    connection.sendall(line.encode())
"""


class Echo:
    """`process` gives back on stdout what is written to its stdin, over some connection."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._back: queue.Queue[str] = queue.Queue()
        self._asked = 0
        threading.Thread(target=self._read, daemon=True).start()
        assert self.answers(within_s=20), "the connection does not come about"

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._back.put(line.strip())
        except ValueError:
            pass  # closed at the end of a test

    def answers(self, *, within_s: float = 1.0) -> bool:
        """Send a line; whether it comes back in time. One that comes back later is not taken for a later line."""
        self._asked += 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{self._asked}\n")
            self._process.stdin.flush()
            while self._back.get(timeout=within_s) != str(self._asked):
                pass
        except (queue.Empty, OSError):
            return False
        return True
