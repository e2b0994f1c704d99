"""`rig bootstrap` on a node, and a fault of each kind whose script is killed there: whatever is left to heal by itself
is what was installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from rig.faults.plan.registry import KINDS
from rig.injection.acts import act_on_node
from rig.nodes.bootstrap import Step, allowed_for
from rig.nodes.bootstrap import bootstrap as over_ssh
from rig.nodes.open import open_nodes
from rig.nodes.scripts import process_values
from tests.faults.amounts import small
from tests.hosts.hosts import Hosts, Script, until
from tests.hosts.standing import Foreign, settled, until_as_before

FAULTS = Path(__file__).parents[2] / "faults"
STRUCK: tuple[str, ...] = (
    "node-crash",
    "freeze",
    "partition",
    "net-delay",
    "link-down",
    "memory-pressure",
    "disk-fill",
)
"""One of each way to undo; `make sweep` has the others."""
NODE = "node-1"


def bootstrap(hosts: Hosts, step: Step) -> str:
    async def run() -> list[str]:
        async with open_nodes(hosts.inventory) as nodes:
            told = await over_ssh(nodes[NODE], step, allowed_for(KINDS))
        assert not told.refused, told
        return told.lines

    return "\n".join(asyncio.run(run()))


def strike(hosts: Hosts, kind: str) -> Script:
    """For 3 s, as the rig would; until it holds."""
    node = hosts.inventory.nodes[NODE]
    peers = [address for name, other in hosts.inventory.nodes.items() if name != NODE for address in other.addresses]
    if KINDS[kind].cuts:
        script, values = "partition.sh", process_values(node) | {"peers": " ".join(peers), "direction": "both"}
    else:
        act = act_on_node(KINDS[kind], NODE, node, small(kind), peers=peers, emulated=True)
        script, values = act.script, {key: value for key, value in act.values.items() if value}
    running = hosts.script(NODE, script, folder=FAULTS, hold="3", id=kind, **values)
    assert running.wait_for("holding"), running.said
    return running


def killed_and_healed(hosts: Hosts, kind: str, look: Callable[[], object]) -> None:
    """The script is killed in its hold, and its session ends with it. `look` is called until the lease is gone."""
    foreign = Foreign(hosts, NODE)
    try:
        before = settled(hosts, NODE)
        script = strike(hosts, kind)
        lent = foreign.lend()
        lease = Path(hosts.inventory.nodes[NODE].rig_dir) / "leases" / kind
        pid = next(line for line in lease.read_text().splitlines() if line.startswith("script_pid=")).partition("=")[2]
        assert hosts.inside(NODE, f"kill -KILL {pid}").status == 0
        assert "healed" not in script.said

        def gone() -> bool:
            look()
            return not lease.exists()

        until(gone, "the lease is gone", within_s=60)
        until_as_before(hosts, NODE, before)
        assert foreign.lease.read_text() == lent
    finally:
        foreign.remove()
