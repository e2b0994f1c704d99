"""A simulated node keeps the contract of nodes, as far as there is something behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rig.config.inventory import Embedded
from rig.errors import NodeError
from rig.faults.plan.kind import AnyKind, Pair
from rig.faults.plan.registry import KINDS
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.loop import LoopClock, VirtualLoop
from rig.lab.simulated.node import VirtualNode
from rig.nodes.node import NodeConnection, ScriptEnd
from tests.nodes import contract

STRUCK = [kind for kind in KINDS.values() if not isinstance(kind.aim, Pair)]


def on_a_node(folder: Path, play: Callable[[VirtualNode, LoopClock], Awaitable[None]]) -> None:
    cluster = VirtualCluster(Embedded(seed=1), folder)

    async def main(loop: VirtualLoop) -> None:
        await play(cluster.connections()["node-1"], LoopClock(loop))

    cluster.run(main, limit_s=60.0)


@pytest.mark.parametrize(
    "holds",
    [
        contract.a_freeze_holds_until_it_is_healed,
        contract.a_fault_goes_on_when_nobody_follows_it,
        contract.a_strike_that_outlasts_its_time_is_told,
    ],
)
def test_faults(tmp_path: Path, holds: Callable[[NodeConnection], Awaitable[None]]) -> None:
    on_a_node(tmp_path, lambda node, _: holds(node))


def test_its_clock_is_another_than_that_of_the_run(tmp_path: Path) -> None:
    on_a_node(tmp_path, contract.the_clock_is_that_of_the_scripts)


def test_its_log(tmp_path: Path) -> None:
    async def play(node: VirtualNode, _: LoopClock) -> None:
        log = (await node.evidence(state_bytes=10_000, log_bytes=100_000, timeout_s=1.0)).log.decode().splitlines()
        texts = [line.partition(" ")[2] for line in log]
        sign = next(text for text in reversed(texts) if "elected" in text)
        await contract.the_past_of_a_log_comes_before_its_mark(node, "/log", sign, texts[-1])

    on_a_node(tmp_path, play)


@pytest.mark.parametrize("kind", STRUCK, ids=[kind.name for kind in STRUCK])
def test_every_kind_of_fault_is_struck_or_skipped(tmp_path: Path, kind: AnyKind) -> None:
    """None is unknown to it, and none is said to be struck without being so."""

    async def play(node: VirtualNode, _: LoopClock) -> None:
        events = contract.Events()
        values = {**contract.FREEZE, "hold": "1", "peers": node.node.addresses[0].replace(".1", ".2"), "port": "1"}
        end = await node.strike(kind.script, values, events, timeout_s=60.0)
        assert end == (ScriptEnd(0) if "struck" in events.names else ScriptEnd(10))
        assert events.names[-1] == ("dropped" if "struck" in events.names else "skipped")

    on_a_node(tmp_path, play)


def test_what_it_has_not_got_is_refused(tmp_path: Path) -> None:
    async def play(node: VirtualNode, _: LoopClock) -> None:
        with pytest.raises(NodeError, match="does not have it"):
            await node.script("facts.sh", {}, timeout_s=1.0)
        with pytest.raises(NodeError, match="nothing to hold"):
            await node.carry_out("hold", timeout_s=1.0)

    on_a_node(tmp_path, play)
