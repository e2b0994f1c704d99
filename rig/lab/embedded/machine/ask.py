"""Ask a machine over its control socket from another process, as the shims do."""

from __future__ import annotations

import os
import socket

END = b"\n\0\n"


def ask(control_socket: str, name: str, *arguments: str, timeout_s: float = 2.0) -> str:
    """Ask a machine from another process, synchronously. Raises OSError when it does not answer."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(timeout_s)
        asked.connect(control_socket)
        asked.sendall("\0".join([name, os.getcwd(), *arguments]).encode() + END)
        answer = b""
        while part := asked.recv(65536):
            answer += part
    status, _, rest = answer.decode(errors="replace").partition("\0")
    if status != "0":
        raise OSError(f"{name}: status {status} {rest!r}")
    return rest.partition("\0")[0]
