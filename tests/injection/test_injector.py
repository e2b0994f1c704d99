"""A schedule of faults against a real node: gaps, recovery, the blast radius, aborts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from rig.errors import FaultError
from rig.faults.plan.plan import KindPlan, Plan
from rig.faults.plan.registry import KINDS
from rig.injection.fault import Identity
from rig.injection.injector import Injector
from rig.injection.schedule import Planned, by_hand
from rig.journal.records import NodeMemory
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.upload import upload
from rig.targets.exo.fields import ExoProcess
from tests.injection.rigs import Rig
from tests.nodes.fakeexo import states


def freezes(hold_s: float = 0.3, gap_s: float = 0.2) -> Iterator[Planned]:
    for index in range(50):
        planned = by_hand(KINDS["freeze"], node="n1", model=None, hold_s=hold_s, everyone=["n1"], index=index)
        yield replace(planned, gap_s=gap_s)


async def recovers(_: int) -> bool:
    return True


def injector(
    rig: Rig, nodes: ShellNodes, schedule: Iterator[Planned], recovered: Callable[[int], Awaitable[bool]] = recovers
) -> Injector:
    plan = Plan(name="test", kinds={"freeze": KindPlan()}, abort_after_unrecovered=2)
    return Injector(
        plan=plan,
        schedule=schedule,
        context=rig.context(nodes),
        journal=rig.journal,
        identity=Identity(run="a run", owner="me@here"),
        recovered=recovered,
    )


async def test_gap_counts_from_recovery_to_strike(rig: Rig) -> None:
    recovered_t: list[float] = []

    async def recovered(index: int) -> bool:
        await asyncio.sleep(0.2)
        recovered_t.append(rig.journal.now())
        if index == 1:
            stop.set()
        return True

    stop = asyncio.Event()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        await injector(rig, nodes, freezes(), recovered).run(stop)
    assert rig.journal.states() == ["planned", "leased", "struck", "holding", "healed"] * 2
    planned, struck = rig.journal.faults()[5], rig.journal.faults()[7]
    assert planned.at_t - recovered_t[0] >= 0.2, "when it is due"
    assert struck.at_t - recovered_t[0] >= 0.2 - struck.at_error_s


async def test_what_must_be_done_before_a_strike_is_done_within_the_gap(rig: Rig) -> None:
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        stop = asyncio.Event()

        async def recovered(_: int) -> bool:
            stop.set()
            return True

        await injector(rig, nodes, freezes(gap_s=6.0), recovered).run(stop)
    planned, leased, struck = rig.journal.faults()[:3]
    assert leased.at_t < planned.at_t, "the script was there before the strike was due, and waited for it"
    assert struck.at_t >= planned.at_t - struck.at_error_s
    assert struck.at_t < planned.at_t + 2.0


async def test_memory_and_processes_are_looked_at_around_each_fault(rig: Rig) -> None:
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        stop = asyncio.Event()

        async def recovered(index: int) -> bool:
            if index == 1:
                stop.set()
            return True

        await injector(rig, nodes, freezes(), recovered).run(stop)
    memory = [record.when for record in rig.journal.records if isinstance(record, NodeMemory)]
    assert memory == ["before fault 0", "after fault 0", "before fault 1", "after fault 1"]


async def test_stop_heals_the_fault_in_force_and_strikes_no_more(rig: Rig) -> None:
    tree = rig.tree()
    stop = asyncio.Event()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(injector(rig, nodes, freezes(hold_s=60.0)).run(stop))
        await rig.journal.reached("holding")
        stop.set()
        async with asyncio.timeout(4.0):
            await running
    assert "stopped" not in states(tree)
    assert rig.journal.states()[-1] == "healed"


async def test_a_stop_in_a_gap_and_a_strike_that_would_come_too_late(rig: Rig) -> None:
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        waiting = injector(rig, nodes, freezes(gap_s=60.0))
        stop = asyncio.Event()
        running = asyncio.create_task(waiting.run(stop))
        await asyncio.sleep(0)
        assert waiting.strike_due_t is not None
        stop.set()
        await running
        late = injector(rig, nodes, freezes(hold_s=10.0))
        late.strike_until_t = rig.journal.now() + 5.0
        await late.run(asyncio.Event())
    assert rig.journal.records == []


async def test_too_many_without_recovery_abort(rig: Rig) -> None:
    async def never(_: int) -> bool:
        return False

    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        with pytest.raises(FaultError, match="2 faults in a row without recovery"):
            await injector(rig, nodes, freezes(), never).run(asyncio.Event())
    assert rig.journal.states().count("healed") == 2


async def test_a_fault_that_is_in_force_already_aborts(rig: Rig) -> None:
    stop = asyncio.Event()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        other = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=60.0).run(stop))
        await rig.journal.reached("holding")
        with pytest.raises(FaultError, match="blast radius"):
            await injector(rig, nodes, freezes()).run(asyncio.Event())
        stop.set()
        await other


async def test_a_node_under_a_fault_and_one_without_exo_are_two(rig: Rig) -> None:
    """Each alone would leave room for a third under a blast radius of 2."""
    stop = asyncio.Event()
    empty = ExoProcess(home=str(rig.server.folder / "no exo here"), start="true")
    third = rig.server.node(rig_dir=str(rig.server.folder / "rig of n3"), process=empty, api="http://127.0.0.1:3")
    second = rig.node(rig_dir=str(rig.server.folder / "rig of n2"), api="http://127.0.0.1:2")
    schedule = iter([replace(next(freezes()), node="n2", nodes=("n2",))])
    async with open_nodes(rig.server.inventory(n1=rig.node(), n2=second, n3=third)) as nodes:
        for conn in nodes.values():
            await upload(conn)
        other = asyncio.create_task(rig.fault(nodes, "cpu-hog", hold_s=60.0).run(stop))
        await rig.journal.reached("holding")
        striking = injector(rig, nodes, schedule)
        striking.plan = striking.plan.model_copy(update={"blast_radius": 2})
        with pytest.raises(FaultError, match=r"cpu-hog .* on n1; exo does not run on n3"):
            await striking.run(asyncio.Event())
        stop.set()
        await other


async def test_an_unhealed_fault_aborts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.injection.act.RELEARN_S", 0.2)
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(injector(rig, nodes, freezes(hold_s=0.5)).run(asyncio.Event()))
        await rig.journal.reached("struck")
        rig.server.kill()
        with pytest.raises(FaultError, match="not known to be healed"):
            await running


async def test_a_node_without_exo_is_not_made_worse(rig: Rig) -> None:
    stop = asyncio.Event()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        rig.exo.kill()
        running = asyncio.create_task(injector(rig, nodes, freezes()).run(stop))
        skipped = await rig.journal.reached("skipped")
        stop.set()
        await running
    assert "exo does not run on n1" in skipped.reason


async def test_cancellation_heals_first(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(injector(rig, nodes, freezes(hold_s=60.0)).run(asyncio.Event()))
        await rig.journal.reached("holding")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert "stopped" not in states(tree)
