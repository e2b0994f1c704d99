"""The one place where runs are put together: soaks and scenarios, on real machines and on simulated nodes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig.clock import RunClock
from rig.config.workload import Workload
from rig.errors import TargetError
from rig.injection.aim import AimContext, InstanceView
from rig.injection.fault import Identity
from rig.journal.run import RunInfo, write_run
from rig.journal.write import Journal
from rig.observe.cluster_view import ClusterView
from rig.observe.observer import Observer
from rig.run.activities import Activities
from rig.run.settings import watching
from rig.run.stand import Stand
from rig.targets.target import Target


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts that every run has, wired together."""

    journal: Journal
    activities: Activities
    observer: Observer
    identity: Identity
    context: AimContext


@contextmanager
def put_together(
    stand: Stand, info: RunInfo, folder: Path, clock: RunClock, *, workload: Workload, entries: Mapping[str, str]
) -> Generator[Parts]:
    """Writes `run.json` and opens the journal, which is closed at the end.

    `entries`: API by node, of those that are observed. Raises JournalError.
    """
    write_run(folder, info)
    journal = Journal(folder, clock)
    try:
        observer = Observer(
            stand.target,
            entries,
            journal,
            connections=stand.nodes,
            timing=watching(stand.pace),
            health=stand.health,
        )
        yield Parts(
            journal=journal,
            activities=Activities(journal, stand.halt),
            observer=observer,
            identity=Identity(run=info.run, owner=stand.owner, token=stand.token),
            context=AimContext(
                nodes=stand.nodes,
                instances=lambda: _instances_now(stand.target, observer.view, entries),
                rehearsed=stand.rehearsed,
                rdma_models=_over_rdma(workload),
                emulated=stand.inventory.emulated is not None,
            ),
        )
    finally:
        journal.close()


async def _instances_now(target: Target, view: ClusterView, entries: Mapping[str, str]) -> list[InstanceView]:
    """By inventory names, read anew from the node with the best view, for aiming at the strike."""
    best = view.best()
    if best is None:
        raise TargetError("no node's API answers")
    fresh = await target.instances(entries[best])
    return [
        InstanceView(
            instance_id=identity,
            model=instance["model"] or "",
            runners={name: runner for node, runner in instance["runners"].items() if (name := view.node_of(node))},
            port=instance["port"],
        )
        for identity, instance in fresh.items()
    ]


def _over_rdma(workload: Workload) -> frozenset[str]:
    """The models whose instances speak RDMA among each other."""
    return frozenset(
        model.model for model in workload.models if model.instance_meta == "MlxJaccl" and model.min_nodes > 1
    )
