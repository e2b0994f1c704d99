"""What there is to see on a simulated node, and from it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from rig.lab.exo.node import DEFAULT_MEMORY_BYTES
from rig.lab.exo.simulation import Simulation
from rig.nodes.inspect import Inspection, Lease, Process, What, elected_in
from rig.targets.exo.fields import ExoProcess

_MASTER: Final = re.compile("promoting self|maintaining self|demoting self|elected master")
_CLAIM: Final = re.compile("promoting self|maintaining self")
_RUNNER: Final = "python -c spawn_main --multiprocessing-fork"
_STARTING: Final = "Starting node "
_AHEAD_S: Final = 1000.0  # how far one node's clock is ahead of the one before it
_PROBE_S: Final = 1.0
_DISK_BYTES: Final = 128 * 1024**3


class NodeClock:
    """The node's own monotonic clock: not that of the run."""

    def __init__(self, sim: Simulation, name: str) -> None:
        self._sim = sim
        self._ahead_s = _AHEAD_S * (1 + sim.names.index(name))

    def now(self) -> float:
        return self._sim.now + self._ahead_s

    def at(self, node_t: float) -> float:
        """On the simulation's clock."""
        return node_t - self._ahead_s


def processes(sim: Simulation, name: str) -> list[Process]:
    """The tree, main first."""
    state = "T" if sim.is_frozen(name) else "S"
    running = sim.processes(name)
    return [
        process_of(one.pid, state, main=one.runner_id is None, ppid=1 if one.runner_id is None else running[0].pid)
        for one in running
    ]


def process_of(pid: int, state: str, *, main: bool, ppid: int) -> Process:
    return Process(pid, ppid, f"b{pid}", state, "python -m exo" if main else _RUNNER)


def inspection(
    sim: Simulation, name: str, clock: NodeClock, what: What, pids: Collection[int], leases: Sequence[Lease]
) -> Inspection:
    """What `inspect.sh` would find there."""
    tree, everything = processes(sim, name), what == "all"
    seen = Inspection(node=name, clock=clock.now())
    if everything or what == "clock":
        seen = replace(seen, boot_id="simulated", os="Linux")
    if everything or what in ("tree", "master"):
        seen = replace(seen, main=tree[0] if tree else None)
    if everything or what == "tree":
        seen = replace(
            seen,
            tree=tree,
            workers=[process for process in tree if ExoProcess.is_worker(process.command)],
            orphans=[process_of(one.pid, "S", main=False, ppid=1) for one in sim.orphans(name)],
            cpu_s={one.pid: round(one.cpu_s, 2) for one in sim.processes(name)},
        )
    if everything or what == "master":
        seen = _with_master(seen, sim, name)
    if everything or what == "leases":
        seen = replace(seen, leases=list(leases))
    if what == "procs":
        seen = replace(seen, tree=[process for process in tree if process.pid in pids])
    if everything:
        available = max(0, DEFAULT_MEMORY_BYTES - sim.memory_used(name))
        seen = replace(seen, mem_available_bytes=available, disk_free_bytes=_DISK_BYTES, uid=0, filter_allowed=True)
    return seen


def _with_master(seen: Inspection, sim: Simulation, name: str) -> Inspection:
    """`exo.log` begins anew with each process: what an earlier one wrote is not in it."""
    log, logic = sim.log(name), sim.logic(name)
    began = next((index for index in reversed(range(len(log))) if log[index][1].startswith(_STARTING)), 0)
    said = [(t, text) for t, text in log[began:] if _MASTER.search(text)]
    text = said[-1][1] if said else ""
    standing = list(takewhile(lambda line: _CLAIM.search(line[1]), reversed(said)))
    return replace(
        seen,
        master_log=text,
        master_claim=bool(standing) if text else None,
        master_files=logic is not None and logic.is_master,
        # Its log has whole seconds.
        master_claimed_s=float(int(sim.now) - int(standing[-1][0])) if standing else None,
        elected_id=elected_in(text),
        node_id=log[began][1].removeprefix(_STARTING) if log else "",
    )


async def answering(sim: Simulation, name: str, addresses: Sequence[str], owners: Mapping[str, str]) -> set[str]:
    """Those that answer. A cut one takes its whole second."""
    asked = [address for address in addresses if address in owners]
    answered = {address for address in asked if _answers(sim, name, owners[address])}
    if len(answered) < len(asked):
        await asyncio.sleep(_PROBE_S)
    return answered


def _answers(sim: Simulation, source: str, sink: str) -> bool:
    """A stopped process still accepts connections; a dead one does not."""
    return sim.logic(sink) is not None and sim.reaches(source, sink)
