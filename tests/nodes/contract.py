"""What holds of every `NodeConnection`, whatever stands behind it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from rig.clock import Clock
from rig.errors import NodeError
from rig.nodes.node import NodeConnection, ScriptEnd
from rig.nodes.offset import measure
from rig.nodes.scripts import ScriptEvent

FREEZE = {"id": "f1", "run": "contract", "owner": "tests", "hold": "60"}
STATES = ["leased", "struck", "holding", "healing", "healed", "dropped"]


class Events:
    """The events of a script as they come."""

    def __init__(self) -> None:
        self.seen: list[ScriptEvent] = []
        self._came = asyncio.Event()

    def __call__(self, event: ScriptEvent) -> None:
        self.seen.append(event)
        self._came.set()

    @property
    def names(self) -> list[str]:
        return [event.event for event in self.seen]

    async def until(self, name: str, *, within_s: float = 20.0) -> None:
        async with asyncio.timeout(within_s):
            while name not in self.names:
                self._came.clear()
                await self._came.wait()


async def a_freeze_holds_until_it_is_healed(conn: NodeConnection) -> None:
    main = (await conn.inspect("tree")).main
    assert main is not None
    events = Events()
    striking = asyncio.create_task(conn.strike("freeze.sh", FREEZE, events, timeout_s=90.0))
    await events.until("holding")
    assert [lease.id for lease in (await conn.inspect("leases")).leases] == ["f1"]
    [frozen] = (await conn.inspect("procs", pids=[main.pid])).tree
    assert (frozen.identity, frozen.state) == (main.identity, "T")
    assert (await conn.heal("all", Events(), timeout_s=30.0)).status == 0
    assert await striking == ScriptEnd(0)
    assert events.names == STATES
    assert [event.event for event in await conn.fault_log("f1", timeout_s=10.0)] == STATES
    assert (await conn.inspect("leases")).leases == []
    [awake] = (await conn.inspect("procs", pids=[main.pid])).tree
    assert awake.state != "T"


async def a_fault_goes_on_when_nobody_follows_it(conn: NodeConnection) -> None:
    events = Events()
    striking = asyncio.create_task(conn.strike("freeze.sh", FREEZE, events, timeout_s=90.0))
    await events.until("holding")
    striking.cancel()
    await asyncio.gather(striking, return_exceptions=True)
    [lease] = (await conn.inspect("leases")).leases
    assert lease.script_alive
    assert (await conn.heal("f1", Events(), timeout_s=30.0)).status == 0
    assert [event.event for event in await conn.fault_log("f1", timeout_s=10.0)] == STATES


async def a_strike_that_outlasts_its_time_is_told(conn: NodeConnection) -> None:
    with pytest.raises(NodeError, match="did not end"):
        await conn.strike("freeze.sh", FREEZE, Events(), timeout_s=2.0)
    assert (await conn.heal("f1", Events(), timeout_s=30.0)).status == 0


async def the_clock_is_that_of_the_scripts(conn: NodeConnection, clock: Clock) -> None:
    offset = await measure(conn, clock)
    before = clock.now()
    node_t = (await conn.inspect("clock")).clock
    slack_s = offset.error_s + offset.tick_s + 0.001
    assert before - slack_s <= offset.to_run(node_t) <= clock.now() + slack_s


async def the_past_of_a_log_comes_before_its_mark(conn: NodeConnection, path: str, sign: str, last: str) -> None:
    """`sign` is its last line with the pattern, `last` its last one."""
    seen: list[tuple[str, str]] = []
    async with aclosing(conn.follow_log(path, "elected [Mm]aster", back=1)) as lines:
        while not seen or seen[-1][0] != "mark":
            line = await anext(lines)
            seen.append((line.age, line.text))
    assert seen == [("sign", sign), ("past", last), ("mark", "")]
