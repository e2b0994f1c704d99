"""Which TCP sockets the processes of a node have, as `lsof -nP -a -p PIDS -iTCP -Fpn` would tell."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from pathlib import Path

from rig.lab.embedded.machine.network import Link
from rig.lab.embedded.machine.peer_pid import peer_pid
from rig.lab.embedded.settings import API_PORT, NodeSettings


def open_sockets(settings: NodeSettings, links: Iterable[Link], main_pid: int | None, wanted: set[int]) -> str:
    """`p`, `f` and `n` lines for the pids in `wanted`: listening ports first, then connections."""
    names: dict[int, list[str]] = {pid: [] for pid in sorted(wanted)}
    if main_pid in names:
        names[main_pid].append(f"*:{API_PORT}")
    for port, pid in listeners(settings):
        if pid in names:
            names[pid].append(f"*:{port}")
    for link in sorted(links, key=lambda each: each.flow.source_port):
        if link.pid in names:
            flow = link.flow
            local, remote = _name(flow.source, flow.source_port), _name(flow.destination, flow.destination_port)
            names[link.pid].append(f"{local}->{remote}")
    lines: list[str] = []
    for pid, sockets in names.items():
        if sockets:
            lines.append(f"p{pid}")
            for number, name in enumerate(sockets, start=10):
                lines += [f"f{number}", f"n{name}"]
    return "".join(f"{line}\n" for line in lines)


def _name(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def listeners(settings: NodeSettings) -> list[tuple[int, int]]:
    """(port, pid) of every process that listens on a virtual port of this node now."""
    found: list[tuple[int, int]] = []
    for path in sorted(Path(settings.sockets).iterdir()):
        if path.name.isdigit():
            pid = listener_pid(str(path))
            if pid:
                found.append((int(path.name), pid))
    return found


def listener_pid(path: str) -> int:
    """Who listens on a unix socket; 0 when nobody does."""
    with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
        sock.setblocking(False)  # noqa: FBT003 (its only form)
        sock.connect(path)
        return peer_pid(sock)
    return 0
