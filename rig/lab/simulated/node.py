"""A simulated node, as `rig.nodes` names what can be asked of one; under virtual time."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from rig.config.inventory import Node
from rig.errors import CommandFailed, CommandTimeout, NodeError, NodeNotReady
from rig.lab.exo.simulation import Simulation
from rig.lab.simulated.event_file import VirtualEventFile
from rig.lab.simulated.inspecting import NodeClock, answering, inspection, processes
from rig.lab.simulated.scripts import Scripts
from rig.nodes.inspect import Inspection, What
from rig.nodes.node import Evidence, Heard, LoggedLine, NodeTime, ReadClock, ScriptEnd, Which
from rig.nodes.scripts import ScriptEvent

_LATENCY_S: Final = 0.02
_START_S: Final = 0.5
_LOG_LOOK_S: Final = 0.1
_TICKS: Final = 10_000  # of a node's clock, a second

_T = TypeVar("_T")


class VirtualNode:
    """A `NodeConnection`; every operation takes 20 ms, faults as long as they hold."""

    def __init__(self, name: str, node: Node, sim: Simulation, addresses: Mapping[str, str]) -> None:
        self.name = name
        self.node = node
        self.lock = ""
        self._sim = sim
        self._addresses = addresses
        self._clock = NodeClock(sim, name)
        self._faults = Scripts(sim, name, self._clock, addresses)
        self._scripts: Mapping[str, Callable[[Mapping[str, str]], str]] = {
            "events.sh": VirtualEventFile(sim, name).said,
        }

    async def close(self) -> None:
        """What was struck goes on."""

    async def inspect(
        self, what: What = "all", *, pids: Sequence[int] | None = None, timeout_s: float = 10.0
    ) -> Inspection:
        del timeout_s
        await asyncio.sleep(_LATENCY_S)
        return inspection(self._sim, self.name, self._clock, what, pids or (), self._faults.leases())

    async def script(self, script: str, values: Mapping[str, str], *, timeout_s: float) -> str:
        del timeout_s
        await asyncio.sleep(_LATENCY_S)
        if (said := self._scripts.get(script)) is None:
            raise CommandFailed(self.name, script, 127, "a simulated node does not have it")
        return said(values)

    async def strike(self, script: str, values: Mapping[str, str], heard: Heard, *, timeout_s: float) -> ScriptEnd:
        await asyncio.sleep(_LATENCY_S)
        return await self._within(timeout_s, script, self._faults.strike(script, values, heard))

    async def heal(self, what: str, heard: Heard, *, timeout_s: float) -> ScriptEnd:
        """Each fault says itself that it is healed."""
        del heard
        await asyncio.sleep(_LATENCY_S)
        return await self._within(timeout_s, "heal", self._faults.heal(what))

    async def fault_log(self, fault_id: str, *, timeout_s: float) -> list[ScriptEvent]:
        del timeout_s
        await asyncio.sleep(_LATENCY_S)
        return list(self._faults.logs.get(fault_id, ()))

    async def carry_out(self, which: Which, *, timeout_s: float) -> None:
        await asyncio.sleep(_LATENCY_S)
        match which:
            case "start":
                self._sim.start(self.name)
                await self._within(timeout_s, which, asyncio.sleep(_START_S))
            case "stop":
                self._sim.crash(self.name)
            case "hold" | "release":
                raise NodeNotReady(self.name, f"a simulated node has nothing to {which}")

    @asynccontextmanager
    async def clock(self, *, timeout_s: float) -> AsyncGenerator[ReadClock]:
        del timeout_s

        async def read() -> NodeTime:
            return NodeTime(math.floor(self._clock.now() * _TICKS) / _TICKS, 1.0 / _TICKS)

        await asyncio.sleep(_LATENCY_S)
        yield read

    async def follow_log(self, path: str, pattern: str, *, back: int) -> AsyncGenerator[LoggedLine]:
        del path
        await asyncio.sleep(_LATENCY_S)
        past = self._sim.log(self.name)
        sign = next((text for _, text in reversed(past) if re.search(pattern, text)), None)
        if sign is not None:
            yield LoggedLine("sign", sign)
        for _, text in past[-back:]:
            yield LoggedLine("past", text)
        yield LoggedLine("mark")
        seen = past[-1][0] if past else -1.0
        while True:
            await asyncio.sleep(_LOG_LOOK_S)
            new = [line for line in self._sim.log(self.name) if line[0] > seen]
            for t, text in new:
                yield LoggedLine("new", text)
                seen = t

    async def answering(self, addresses: Sequence[str], port: int, *, timeout_s: float) -> set[str]:
        del port
        await asyncio.sleep(_LATENCY_S)
        return await self._within(timeout_s, "nc", answering(self._sim, self.name, addresses, self._addresses))

    async def controller_address(self) -> str:
        raise NodeError(self.name, "a simulated node does not see from where its clients come")

    async def evidence(self, *, state_bytes: int, log_bytes: int, timeout_s: float) -> Evidence:
        del timeout_s
        await asyncio.sleep(_LATENCY_S)
        state = "".join(f"{process}\n" for process in processes(self._sim, self.name))
        log = "".join(f"{t:.3f} {text}\n" for t, text in self._sim.log(self.name))
        return Evidence(state.encode()[:state_bytes], log.encode()[-log_bytes:])

    async def _within(self, timeout_s: float, what: str, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            async with asyncio.timeout(timeout_s):
                return await work
        except TimeoutError as exc:
            raise CommandTimeout(self.name, f"{what} did not end within {timeout_s:g} s") from exc
