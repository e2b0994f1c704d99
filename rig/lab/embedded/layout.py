"""`cluster.json`: what the processes that look after a whole cluster need to know of it. Imports little: each of them
starts with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from rig.config.defects import BehaviourName, DefectName
from rig.errors import ClusterError


class ClusterLayout(msgspec.Struct, frozen=True, kw_only=True):
    """`cluster.json`: what the processes that look after the whole cluster need."""

    cluster: str
    folder: str
    sockets: str
    nodes: list[str]
    python: str
    behaviour: BehaviourName
    defects: list[DefectName] = []
    pace: float
    hosts: Literal["processes", "namespaces"] = "processes"
    system: Literal["linux", "darwin"] = "linux"
    subnet: int = 0  # with namespaces: K of 10.77.K.0/24

    def node_folder(self, node: str) -> Path:
        return Path(self.folder) / node


def read_layout(folder: Path | str) -> ClusterLayout:
    """Raises ClusterError when there is no cluster in `folder`."""
    try:
        return msgspec.json.decode((Path(folder) / "cluster.json").read_bytes(), type=ClusterLayout)
    except (OSError, msgspec.MsgspecError) as error:
        raise ClusterError(f"no embedded cluster in {folder}: {error}") from error
