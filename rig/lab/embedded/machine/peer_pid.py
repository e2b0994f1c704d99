"""Who is on the other side of a unix socket."""

from __future__ import annotations

import socket
import struct
import sys


def peer_pid(sock: socket.socket) -> int:
    """The process on the other side of a unix socket; 0 when it cannot be told."""
    try:
        if sys.platform == "linux":
            data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", data)[0])
        return int(sock.getsockopt(0, 2))  # SOL_LOCAL, LOCAL_PEERPID
    except OSError:
        return 0
