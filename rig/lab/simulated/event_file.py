"""What `events.sh` says on a simulated node: the file is made up to date whenever it is asked for."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from rig.lab.exo.event_views import events_from
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.exo.simulation import Simulation

_HEAD_BYTES = 128


class VirtualEventFile:
    """Of one node. Each session of each process has a file of its own, which only grows."""

    def __init__(self, sim: Simulation, name: str) -> None:
        self._sim = sim
        self._name = name
        self._inode = ""
        self._count = 0
        self._bytes = bytearray()

    def said(self, values: Mapping[str, str]) -> str:
        """Nothing while the node's process is dead."""
        offset, most = int(values["offset"]), int(values["most"])
        logic = self._sim.logic(self._name)
        if logic is None:
            return ""
        session = logic.replica.session
        inode = f"{logic.node_id}-{session.master}-{session.clock}"
        if inode != self._inode or logic.replica.next_index < self._count:
            self._inode, self._count, self._bytes = inode, 0, bytearray()
        for event in events_from(logic.replica, STOCK_MODELS, self._count):
            record = msgspec.msgpack.encode(event)
            self._bytes += len(record).to_bytes(4, "big") + record
            self._count += 1
        facts = {
            "path": "event_log/api/events.bin",
            "inode": self._inode,
            "size": str(len(self._bytes)),
            "head": base64.b64encode(self._bytes[:_HEAD_BYTES]).decode(),
        }
        text = "".join(f"{key}={value}\n" for key, value in facts.items())
        return f"{text}data\n{base64.b64encode(self._bytes[offset : offset + most]).decode()}\n"
