"""The fault scripts on a simulated node: they say what `faults/*.sh` say, at the same moments of their stories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rig.faults.plan.kind import Effect
from rig.faults.plan.registry import KINDS
from rig.lab.exo.simulation import Simulation
from rig.lab.simulated.inspecting import NodeClock, processes
from rig.nodes.inspect import Lease
from rig.nodes.node import Heard, ScriptEnd
from rig.nodes.scripts import ScriptEvent

HEALED: Final = 0
SKIPPED: Final = 10
_STRIKE_S: Final = 0.05
_START_S: Final = 0.5
_PROOF_S: Final = 1.0  # of a partition
_EFFECTS: Final[Mapping[str, Effect]] = {kind.script: kind.effect for kind in KINDS.values()}
_HEAL_LIMIT_S: Final = 60.0


class _SkipScript(Exception):
    """Nothing was struck, for the reason given."""


@dataclass
class RunningScript:
    """One fault on this node. `stop` ends its hold early."""

    id: str
    script: str
    values: Mapping[str, str]
    began: float
    heard: Heard
    log: list[ScriptEvent]
    clock: NodeClock
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    phase: str = "leased"

    @property
    def hold_s(self) -> float:
        return float(self.values.get("hold", "0"))

    def say(self, event: str, **fields: str) -> None:
        said = ScriptEvent(event, round(self.clock.now(), 4), fields)
        self.log.append(said)
        self.heard(said)


class Scripts:
    """What runs on one node, and the leases it holds. `logs`: by the id of the fault, what its script has said."""

    def __init__(self, sim: Simulation, name: str, clock: NodeClock, addresses: Mapping[str, str]) -> None:
        self.logs: dict[str, list[ScriptEvent]] = {}
        self._sim = sim
        self._name = name
        self._clock = clock
        self._addresses = addresses
        self._running: dict[str, tuple[RunningScript, asyncio.Task[int]]] = {}

    async def strike(self, script: str, values: Mapping[str, str], heard: Heard) -> ScriptEnd:
        """Starts it and follows it to its end; it goes on whatever becomes of who listens."""
        name = values["id"]
        log = self.logs.setdefault(name, [])
        running = RunningScript(name, script, values, self._clock.now(), heard, log, self._clock)
        task = asyncio.create_task(self._fault(running))
        self._running[name] = running, task
        return ScriptEnd(await asyncio.shield(task))

    async def heal(self, what: str) -> ScriptEnd:
        meant = [(one, task) for one, task in self._running.values() if what in ("all", one.id)]
        for one, _ in meant:
            one.stop.set()
        if meant:
            await asyncio.wait([task for _, task in meant], timeout=_HEAL_LIMIT_S)
        return ScriptEnd(HEALED)

    def leases(self) -> list[Lease]:
        return [
            Lease(
                node=self._name,
                id=one.id,
                kind=one.script.removesuffix(".sh"),
                owner=one.values.get("owner", ""),
                run=one.values.get("run", ""),
                started_node_t=one.began,
                deadline_node_t=one.began + one.hold_s,
                phase=one.phase,
                same_boot=True,
                script_alive=True,
            )
            for one, _ in self._running.values()
        ]

    async def _fault(self, running: RunningScript) -> int:
        try:
            running.say("leased")
            at = running.values.get("at")
            wait_s = _STRIKE_S if at is None else max(_STRIKE_S, self._clock.at(float(at)) - self._sim.now)
            await asyncio.sleep(wait_s)
            try:
                return await self._strike(running)
            except _SkipScript as skip:
                running.say("skipped", reason=str(skip))
                return SKIPPED
        finally:
            del self._running[running.id]

    async def _strike(self, running: RunningScript) -> int:
        match _EFFECTS[running.script]:
            case "tree-killed":
                await self._crash(running)
            case "tree-stopped":
                await self._freeze(running)
            case "process-killed":
                self._kill_runner(running)
            case "paths-cut":
                await self._partition(running)
            case "tree-ended" | "paths-shaped" | "restarted" | "elsewhere":
                raise _SkipScript(f"a simulated node cannot do what {running.script} does")
        running.say("dropped")
        return HEALED

    async def _hold(self, running: RunningScript) -> None:
        running.phase = "holding"
        running.say("holding")
        try:
            async with asyncio.timeout(running.hold_s):
                await running.stop.wait()
        except TimeoutError:
            pass
        running.phase = "healing"
        running.say("healing")

    def _pids(self) -> str:
        return " ".join(process.identity for process in processes(self._sim, self._name))

    async def _crash(self, running: RunningScript) -> None:
        pids = self._pids()
        if not pids:
            raise _SkipScript("exo does not run")
        self._sim.crash(self._name)
        running.say("struck", pids=pids)
        await self._hold(running)
        self._sim.start(self._name)
        await asyncio.sleep(_START_S)
        running.say("healed", main=processes(self._sim, self._name)[0].identity)

    async def _freeze(self, running: RunningScript) -> None:
        pids = self._pids()
        if not pids:
            raise _SkipScript("exo does not run")
        self._sim.freeze(self._name)
        running.say("struck", pids=pids)
        await self._hold(running)
        self._sim.resume(self._name)
        running.say("healed")

    def _kill_runner(self, running: RunningScript) -> None:
        """The one whose instance's ring has the port that was asked for."""
        logic, tree = self._sim.logic(self._name), processes(self._sim, self._name)
        if logic is None:
            raise _SkipScript("exo does not run")
        for process, seen in zip(self._sim.processes(self._name)[1:], tree[1:], strict=True):
            instance = logic.state.instance_of_runner(process.runner_id or "")
            if instance is not None and str(instance.port) == running.values.get("port"):
                self._sim.kill_runner(self._name, process.runner_id or "")
                running.say("struck", pids=seen.identity, main=tree[0].identity)
                running.say("healed")
                return
        raise _SkipScript("no runner of that instance is there")

    async def _partition(self, running: RunningScript) -> None:
        peers = {self._addresses[a] for a in running.values.get("peers", "").split() if a in self._addresses}
        if not peers:
            raise _SkipScript("no peer is known")
        direction = running.values.get("direction", "both")
        paths = {(self._name, peer) for peer in peers if direction in ("both", "out")}
        paths |= {(peer, self._name) for peer in peers if direction in ("both", "in")}
        for source, sink in paths:
            self._sim.cut(source, sink)
        running.say("struck", ipv4="proved", packets="1")
        await self._hold(running)
        self._sim.heal(paths)
        await asyncio.sleep(_PROOF_S)
        running.say("healed")
