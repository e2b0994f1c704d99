"""What `inspect.sh` and the probes of a partition say on a simulated node."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final

from rig.lab.exo.node import DEFAULT_MEMORY_BYTES
from rig.lab.exo.simulation import Simulation

_MASTER: Final = re.compile("promoting self|maintaining self|demoting self|elected master")
_CLAIM: Final = re.compile("promoting self|maintaining self")
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


def identity(pid: int) -> str:
    return f"{pid}:b{pid}"


def process_lines(sim: Simulation, name: str) -> list[tuple[int, str]]:
    """pid and `pid|ppid|start|state|command` of the tree, main first."""
    state = "T" if sim.is_frozen(name) else "S"
    processes = sim.processes(name)
    found: list[tuple[int, str]] = []
    for process in processes:
        main = process.runner_id is None
        command = "python -m exo" if main else "python -c spawn_main --multiprocessing-fork"
        parent = 1 if main else processes[0].pid
        found.append((process.pid, f"{process.pid}|{parent}|b{process.pid}|{state}|{command}"))
    return found


def inspection(sim: Simulation, name: str, clock: NodeClock, values: Mapping[str, str], leases: Iterable[str]) -> str:
    """`key=value` lines, as docs/node-scripts.md has them."""
    what = values.get("what", "all")
    lines = [f"clock={clock.now():.4f}"]
    tree = process_lines(sim, name)
    if what in ("all", "clock"):
        lines += ["boot_id=simulated", "os=Linux"]
    if what in ("all", "tree", "master") and tree:
        lines += [f"main_pid={tree[0][0]}", f"main_start=b{tree[0][0]}", "main_cmd=python -m exo"]
    if what in ("all", "tree"):
        lines += [f"proc={line}" for _, line in tree]
        lines += [
            f"orphan={one.pid}|1|b{one.pid}|S|python -c spawn_main --multiprocessing-fork" for one in sim.orphans(name)
        ]
        lines += [f"cpu={one.pid}|{one.cpu_s:.2f}" for one in sim.processes(name)]
    if what in ("all", "master"):
        lines += _master(sim, name)
    if what in ("all", "leases"):
        lines += [f"lease={lease}" for lease in leases]
    if what == "procs":
        wanted = values.get("pids", "").split()
        lines += [f"proc={line}" for pid, line in tree if str(pid) in wanted]
    if what == "all":
        available = max(0, DEFAULT_MEMORY_BYTES - sim.memory_used(name))
        lines += [f"mem_available={available}", f"disk_free={_DISK_BYTES}", "uid=0", "sudo_filter=1"]
    return "\n".join(lines) + "\n"


def _master(sim: Simulation, name: str) -> list[str]:
    """`exo.log` begins anew with each process: what an earlier one wrote is not in it."""
    log, logic = sim.log(name), sim.logic(name)
    began = next((index for index in reversed(range(len(log))) if log[index][1].startswith(_STARTING)), 0)
    said = [(t, text) for t, text in log[began:] if _MASTER.search(text)]
    text = said[-1][1] if said else ""
    standing = list(takewhile(lambda line: _CLAIM.search(line[1]), reversed(said)))
    lines = [f"master_log={text}", f"master_claim={'' if not text else int(bool(standing))}"]
    lines += [f"log_now={_stamp(sim.now)}", f"node_id={log[began][1].removeprefix(_STARTING)}" if log else "node_id="]
    if standing:
        lines.append(f"master_since={_stamp(standing[-1][0])} | INFO | {standing[-1][1]}")
    if logic is not None:
        lines.append(f"master_files={int(logic.is_master)}")
    return lines


def _stamp(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S")


async def probe(sim: Simulation, name: str, command: str, addresses: Mapping[str, str]) -> tuple[int, str]:
    """`nc -z` to several addresses at once; those that answer, one a line. A cut one takes its whole second."""
    asked = [word for word in re.findall(r"-w 1 '?([^ ']+)'?", command) if word in addresses]
    open_ones = [address for address in asked if _answers(sim, name, addresses[address])]
    if len(open_ones) < len(asked):
        await asyncio.sleep(_PROBE_S)
    return 0, "".join(f"{address}\n" for address in open_ones)


def _answers(sim: Simulation, source: str, sink: str) -> bool:
    """A stopped process still accepts connections; a dead one does not."""
    return sim.logic(sink) is not None and sim.reaches(source, sink)
