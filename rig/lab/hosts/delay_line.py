"""Packets held back on their way out, on kernels without netem: through a tap device, a queue, and out of the card.

nftables hands what matches over to the tap after the packet has its Ethernet header; a thread reads it there, and when
its time has come sends it by the card itself, with a mark that lets it pass, in the order in which it came. Lives in
the network namespace of this process, and goes with it: the kernel takes a tap back from a process that ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import threading
import time
from collections import deque

from rig.errors import ClusterError
from rig.lab.hosts.switch import run_command, run_ip

TUN, TUNSETIFF = "/dev/net/tun", 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
LET_GO = 0x7A1E7609  # the mark of packets whose time has come
MOST_PACKETS = 10_000  # held at once; more are lost, as they are in a pipe that is full
FRAME_BYTES = 65536


class DelayLine:
    """What it is told to take and leaves by `interface` does so `delay_s` later, until `close`.

    `tap` names the device, in at most 15 characters. `packets`: how many went in so far. Raises ClusterError.
    """

    def __init__(self, tap: str, interface: str, delay_s: float) -> None:
        self.packets = 0
        self._delay_s = delay_s
        self._tap, self._table = tap, f"netdev {tap}"
        self._held: deque[tuple[float, bytes]] = deque()
        try:
            self._frames = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
            self._card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
            fcntl.ioctl(self._frames, TUNSETIFF, struct.pack("16sH22x", tap.encode(), IFF_TAP | IFF_NO_PI))
            self._card.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, LET_GO)
            self._card.bind((interface, 0))
        except OSError as error:
            raise ClusterError(f"packets cannot be delayed: {error}") from error
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        run_ip("link", "set", tap, "addrgenmode", "none", "up")
        hook = f'type filter hook egress device "{interface}" priority 0; policy accept;'
        run_command("nft", f"add table {self._table}; add chain {self._table} out {{ {hook} }}")
        run_command("nft", f"add rule {self._table} out meta mark {LET_GO:#x} accept")

    def take(self, match: str) -> None:
        """From now on also what matches an expression of nft."""
        run_command("nft", f'add rule {self._table} out {match} fwd to "{self._tap}"')

    def close(self) -> None:
        """Nothing is held back from now on; what is held now goes out at once."""
        run_command("nft", f"delete table {self._table}")
        os.close(self._woken)
        self._thread.join()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._frames, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        ended = False
        while not ended:
            wait_ms = max(0.0, self._held[0][0] - time.monotonic()) * 1000 if self._held else None
            ready = dict(poll.poll(wait_ms))
            ended = self._wake in ready
            if self._frames in ready:
                self._take()
            self._let_go(float("inf") if ended else time.monotonic())
        for fd in (self._frames, self._wake):
            os.close(fd)
        self._card.close()

    def _take(self) -> None:
        frame = os.read(self._frames, FRAME_BYTES)
        self.packets += 1
        if len(self._held) < MOST_PACKETS:
            self._held.append((time.monotonic() + self._delay_s, frame))

    def _let_go(self, until: float) -> None:
        """A card that is down, or full, loses the packet."""
        while self._held and self._held[0][0] <= until:
            with contextlib.suppress(OSError):
                self._card.send(self._held.popleft()[1])
