"""What is kept of a fault that went wrong: exo's logs from before it to after the recovery, processes, filters, views.

It is collected after every fault, because some of what makes a fault worth a look (a lost request, a check that
fails) is known only much later, when exo has rotated its logs. `drop_unneeded` then removes what nobody needs.
Everything is bounded: by node, by fault, and for the run, of which the oldest go first.

    FOLDER/forensics/fault-N/NODE.txt (processes, filters, leases)  NODE.log (exo)  views.json
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.errors import NodeError
from rig.nodes.scripts import process_values, q, script_command
from rig.nodes.ssh import NodeConnection, Nodes

LOG_BYTES: Final = 2 * 2**20  # of exo's log, a node and fault; the end of it
STATE_BYTES: Final = 256 * 2**10
RUN_BYTES: Final = 256 * 2**20
LIMIT_S: Final = 15.0
FOLDER: Final = "forensics"

# Read-only, each part bounded; what is not there says nothing. $1: rig_dir. The packet filter is shown by inspect.sh.
_STATE = """
PATH=$PATH:/usr/sbin:/sbin; dir=$1
part() { echo "==== $*"; "$@" 2>&1 | head -c 65536; }
part ps -axww -o pid,ppid,state,lstart,rss,command
if [ "$(uname -s)" = Darwin ]; then
    part vm_stat
else
    part cat /proc/meminfo
fi
for lease in "$dir"/leases/*; do [ ! -f "$lease" ] || part cat "$lease"; done
"""
# $1: exo's log, $2: bytes. exo rotates it at every start, so the earlier one is read first.
_LOG = """
before=$(ls -t "$(dirname "$1")" 2>/dev/null | grep -v "^$(basename "$1")$" | grep '[.]log' | head -n 1)
{ [ -z "$before" ] || { echo "==== $before"; tail -c "$2" "$(dirname "$1")/$before"; }
echo "==== $1"; tail -c "$2" "$1"; } 2>&1 | tail -c "$2"
"""


@dataclass
class Forensics:
    """`collect(fault, views)` after each fault; never raises NodeError: what could not be had is said in its place."""

    nodes: Nodes
    folder: Path
    run_bytes: int = RUN_BYTES
    _sizes: dict[int, int] = field(default_factory=dict[int, int])  # in the order of the faults

    def has(self, fault: int) -> bool:
        return fault in self._sizes

    async def collect(self, fault: int, views: Mapping[str, Any]) -> Path:
        """Raises OSError when the results cannot be written."""
        place = self.folder / FOLDER / f"fault-{fault}"
        told = await asyncio.gather(*(_look(conn) for conn in self.nodes.values()))
        place.mkdir(parents=True, exist_ok=True)
        for name, (state, log) in zip(self.nodes, told, strict=True):
            (place / f"{name}.txt").write_bytes(state)
            (place / f"{name}.log").write_bytes(log)
        (place / "views.json").write_text(json.dumps(views, indent=1, default=str)[:STATE_BYTES])
        self._sizes[fault] = sum(path.stat().st_size for path in place.iterdir())
        self._bound()
        return place

    def _bound(self) -> None:
        """Drops the oldest until the run's limit is kept; the newest always stays."""
        while sum(self._sizes.values()) > self.run_bytes and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest]
            shutil.rmtree(self.folder / FOLDER / f"fault-{oldest}", ignore_errors=True)


async def _look(conn: NodeConnection) -> tuple[bytes, bytes]:
    log = conn.node.process.log_path
    rules, state, lines = await asyncio.gather(
        _ask(conn, script_command(conn, "inspect.sh", process_values(conn.node) | {"what": "rules"})),
        _ask(conn, f"sh -c {q(_STATE)} sh {q(conn.node.rig_dir)}"),
        _ask(conn, f"sh -c {q(_LOG)} sh {q(log)} {LOG_BYTES}"),
    )
    return (rules + state)[:STATE_BYTES], lines[-LOG_BYTES:]


async def _ask(conn: NodeConnection, command: str) -> bytes:
    path = "" if conn.node.path is None else f"PATH={q(conn.node.path)}; export PATH; "
    try:
        said = await conn.run(path + command, timeout_s=LIMIT_S, check=False)
    except NodeError as error:
        return f"not collected: {error.message}\n".encode()
    return (said.stdout + said.stderr).encode(errors="replace")


def worth_keeping(analysis: Analysis, verdict: Verdict) -> frozenset[int]:
    """The numbers of the faults that did not recover or heal, or lost a request. Pure. All of them when a check failed:
    what it failed on may lie between two faults.
    """
    faults = frozenset(fault.number for fault in analysis.faults)
    if any(check.status == "fail" for check in verdict.checks):
        return faults
    unrecovered = {one.fault for one in analysis.recoveries if one.recovery_class == "not recovered"}
    unhealed = {fault.number for fault in analysis.faults if fault.unhealed or fault.invalid}
    lost = {number for number, counts in analysis.requests.by_fault.items() if counts.lost or counts.lost_own_node}
    return faults & (unrecovered | unhealed | lost)


def drop_unneeded(folder: Path, wanted: Collection[int]) -> None:
    """Removes what was collected of no wanted fault, and the folder when nothing is left. Of faults at once, only the
    last has a collection: each wanted fault keeps the first one at or after it.
    """
    places = dict(sorted(_places(folder)))
    kept = {next((number for number in places if number >= each), None) for each in wanted}
    for number, place in places.items():
        if number not in kept:
            shutil.rmtree(place, ignore_errors=True)
    if (folder / FOLDER).is_dir() and not any((folder / FOLDER).iterdir()):
        (folder / FOLDER).rmdir()


def _places(folder: Path) -> Iterator[tuple[int, Path]]:
    for place in (folder / FOLDER).glob("fault-*"):
        number = place.name.removeprefix("fault-")
        if number.isdigit():
            yield int(number), place
