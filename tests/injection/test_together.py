"""Scripts that lie, and faults of several scripts: small scripts take the place of the real ones on the nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rig.config.inventory import Inventory
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.scripts import stock_bundle
from rig.nodes.upload import upload
from tests.injection.rigs import Rig

SAYS = """
now() { read -r up _ </proc/uptime; echo "$up"; }
say() { printf '@rig\\t%s\\t%s\\t%s\\n' "$1" "$(now)" "$2"; }
for pair in "$@"; do case $pair in rig_dir=*) dir=${pair#rig_dir=} ;; at=*) echo "${pair#at=}" >"$dir/at" ;; esac; done
"""
UNTIL_HEALED = (
    SAYS
    + """
say leased; say struck "pids="; say holding
n=0; while [ ! -e "$dir/heal-called" ] && [ $n -lt 300 ]; do sleep 0.05; n=$((n + 1)); done
say healing why=signal; say healed; say dropped
"""
)
SKIPS = SAYS + "say skipped 'reason=no filter here'; exit 10\n"
HEALS = SAYS + 'touch "$dir/heal-called"\n'


def replace(node_rig_dir: str, name: str, text: str) -> None:
    script = Path(node_rig_dir) / stock_bundle().folder / name
    script.unlink()
    script.write_text(text)


def start_ticks(pid: int) -> str:
    """A process's start as the node scripts tell it on Linux: field 22 of its stat."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def two(rig: Rig) -> Inventory:
    """Two nodes on one server, and a third to be cut from."""
    folders = {name: str(rig.server.folder / name) for name in ("n1", "n2", "n3")}
    nodes = {
        name: rig.node(rig_dir=folder, addresses=[f"10.77.0.{number}"])
        for number, (name, folder) in enumerate(folders.items(), start=1)
    }
    return rig.server.inventory(**nodes)


async def put_liars(nodes: ShellNodes, first: str, second: str) -> None:
    await asyncio.gather(*(upload(conn) for conn in nodes.values()))
    for name, text in (("n1", first), ("n2", second)):
        replace(nodes[name].node.rig_dir, "partition.sh", text)
        replace(nodes[name].node.rig_dir, "heal.sh", HEALS)


async def test_a_script_that_lies_is_not_believed(rig: Rig) -> None:
    tree = rig.tree()
    pids = " ".join(f"{one.pid}:{start_ticks(one.pid)}" for one in tree)
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        lie = f"say leased; say struck 'pids={pids}'; say holding; sleep 1; say healing; say healed; say dropped"
        replace(nodes["n1"].node.rig_dir, "freeze.sh", f"{SAYS}\n{lie}\n")
        assert await rig.fault(nodes, "freeze", hold_s=1.0).run(asyncio.Event()) == "ineffective"
    last = rig.journal.faults()[-1]
    assert "the script says it struck, but n1: not stopped" in last.reason
    assert "struck" in last.evidence["n1"]
    assert last.evidence["controller"][0]["says"] == "disagrees"


async def test_both_sides_strike_at_the_same_moment_and_heal_together(rig: Rig) -> None:
    stop = asyncio.Event()
    async with open_nodes(two(rig)) as nodes:
        await put_liars(nodes, UNTIL_HEALED, UNTIL_HEALED)
        sides = (("n1", "n2"), ("n3",))
        fault = rig.fault(nodes, "partition", hold_s=60.0, sides=sides)
        running = asyncio.create_task(fault.run(stop))
        holding = await rig.journal.reached("holding")
        assert holding.nodes == ["n1", "n2", "n3"]
        stop.set()
        assert await running == "healed"
        at = [float((Path(nodes[name].node.rig_dir) / "at").read_text()) for name in ("n1", "n2")]
    assert abs(at[0] - at[1]) < 0.05  # both nodes are this machine: one clock
    assert rig.journal.states() == ["planned", "leased", "struck", "holding", "healed"]


async def test_one_side_that_cannot_ends_the_other(rig: Rig) -> None:
    async with open_nodes(two(rig)) as nodes:
        await put_liars(nodes, UNTIL_HEALED, SKIPS)
        sides = (("n1", "n2"), ("n3",))
        fault = rig.fault(nodes, "partition", hold_s=60.0, sides=sides)
        async with asyncio.timeout(12.0):
            assert await fault.run(asyncio.Event()) in ("invalid", "skipped")
        assert (Path(nodes["n1"].node.rig_dir) / "heal-called").exists()
    assert "n2: no filter here" in rig.journal.faults()[-1].reason
    assert "healed" not in rig.journal.states()
