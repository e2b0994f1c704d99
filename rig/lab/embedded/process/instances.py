"""What of the cluster's log goes into the ledger: instances, deployments, nodes and masters, as this node applied
them.
"""

from __future__ import annotations

import msgspec

from rig.lab.exo.events import (
    DeploymentCreated,
    DeploymentDeleted,
    DeploymentPlaced,
    DeploymentPlacementFailed,
    Event,
    InstanceCreated,
    InstanceDeleted,
    NodeTimedOut,
)
from rig.lab.exo.messages import Session
from rig.lab.exo.replica import Replica
from rig.lab.ledger import InstanceChanged, Ledger

BATCH = 4096


class Noted:
    """Follows a node's log by session and index."""

    def __init__(self, ledger: Ledger, node: str) -> None:
        self.ledger = ledger
        self.node = node
        self._session: Session | None = None
        self._next = 0

    def follow(self, replica: Replica) -> None:
        """Note what was applied since the last call."""
        if replica.session != self._session:
            self._session, self._next = replica.session, replica.log.first
        log = replica.log
        self._next = max(self._next, log.first)
        while self._next < log.next_index:
            entries = log.read(self._next, BATCH)
            if not entries:
                return
            for index, entry in enumerate(entries, start=self._next):
                data = described(entry.event)
                if data is not None:
                    self._write(type(entry.event).__name__, index, data)
            self._next += len(entries)

    def master(self, *, opened: bool) -> None:
        self._write("MasterLogOpened" if opened else "MasterLogClosed", -1, {})

    def _write(self, name: str, index: int, data: dict[str, object]) -> None:
        self.ledger.write(InstanceChanged(t=self.ledger.now(), node=self.node, name=name, index=index, data=data))


def described(event: Event) -> dict[str, object] | None:
    """The fields of an event that matters here; None for the others (tokens, memory, tasks, most of all)."""
    match event:
        case InstanceCreated(instance):
            return {
                "instance_id": instance.instance_id,
                "model_id": instance.model_id,
                "nodes": list(instance.nodes),
                "by_hand": instance.by_hand,
            }
        case DeploymentCreated(deployment):
            return {"deployment_id": deployment.deployment_id, "model_id": deployment.model_id}
        case (
            InstanceDeleted() | DeploymentPlaced() | DeploymentPlacementFailed() | DeploymentDeleted() | NodeTimedOut()
        ):
            return {name: getattr(event, name) for name in msgspec.structs.asdict(event)}
        case _:
            return None
