"""The fault scripts on a simulated node: they say what `faults/*.sh` say, at the same moments of their stories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rig.faults.plan.kind import Effect
from rig.faults.plan.registry import KINDS
from rig.lab.exo.simulation import Simulation
from rig.lab.simulated.inspecting import NodeClock, identity

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
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    phase: str = "leased"
    task: asyncio.Task[int] | None = None

    async def ended(self) -> int:
        assert self.task is not None
        return await asyncio.shield(self.task)


class Scripts:
    """What runs on one node, and the leases it holds."""

    def __init__(self, sim: Simulation, name: str, clock: NodeClock, addresses: Mapping[str, str]) -> None:
        self._sim = sim
        self._name = name
        self._clock = clock
        self._addresses = addresses
        self._running: dict[str, RunningScript] = {}

    def begin(self, script: str, values: Mapping[str, str], put: Callable[[str], None]) -> RunningScript:
        """Start it; it goes on whatever becomes of who listens."""
        running = RunningScript(values.get("id", ""), script, values, self._clock.now())
        work = self._heal(values.get("what", "all")) if script == "heal.sh" else self._fault(running, put)
        running.task = asyncio.create_task(work)
        return running

    def leases(self) -> list[str]:
        """As `inspect.sh` lists them."""
        found: list[str] = []
        for one in self._running.values():
            deadline = one.began + float(one.values.get("hold", "0") or 0.0)
            owner, run = one.values.get("owner", ""), one.values.get("run", "")
            found.append(
                f"{one.id}|{one.script.removesuffix('.sh')}|{owner}|{run}|{one.began:.3f}|{deadline:.3f}|{one.phase}|1|1"
            )
        return found

    async def _heal(self, what: str) -> int:
        meant = [one for one in self._running.values() if what in ("all", one.id)]
        for one in meant:
            one.stop.set()
        tasks = [one.task for one in meant if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_HEAL_LIMIT_S)
        return HEALED

    async def _fault(self, running: RunningScript, put: Callable[[str], None]) -> int:
        def say(event: str, **fields: str) -> None:
            told = "".join(f"\t{key}={value}" for key, value in fields.items())
            put(f"@rig\t{event}\t{self._clock.now():.4f}{told}")

        self._running[running.id] = running
        try:
            say("leased")
            at = running.values.get("at")
            wait_s = _STRIKE_S if at is None else max(_STRIKE_S, self._clock.at(float(at)) - self._sim.now)
            await asyncio.sleep(wait_s)
            try:
                return await self._strike(running, say)
            except _SkipScript as skip:
                say("skipped", reason=str(skip))
                return SKIPPED
        finally:
            del self._running[running.id]

    async def _strike(self, running: RunningScript, say: Callable[..., None]) -> int:
        match _EFFECTS[running.script]:
            case "tree-killed":
                await self._crash(running, say)
            case "tree-stopped":
                await self._freeze(running, say)
            case "process-killed":
                self._kill_runner(running, say)
            case "paths-cut":
                await self._partition(running, say)
            case "tree-ended" | "paths-shaped" | "restarted" | "elsewhere":
                raise _SkipScript(f"a simulated node cannot do what {running.script} does")
        say("dropped")
        return HEALED

    async def _hold(self, running: RunningScript, say: Callable[..., None]) -> None:
        running.phase = "holding"
        say("holding")
        try:
            async with asyncio.timeout(float(running.values.get("hold", "0") or 0.0)):
                await running.stop.wait()
        except TimeoutError:
            pass
        running.phase = "healing"
        say("healing")

    def _pids(self) -> str:
        return " ".join(identity(process.pid) for process in self._sim.processes(self._name))

    async def _crash(self, running: RunningScript, say: Callable[..., None]) -> None:
        pids = self._pids()
        if not pids:
            raise _SkipScript("exo does not run")
        self._sim.crash(self._name)
        say("struck", pids=pids)
        await self._hold(running, say)
        self._sim.start(self._name)
        await asyncio.sleep(_START_S)
        say("healed", main=identity(self._sim.processes(self._name)[0].pid))

    async def _freeze(self, running: RunningScript, say: Callable[..., None]) -> None:
        pids = self._pids()
        if not pids:
            raise _SkipScript("exo does not run")
        self._sim.freeze(self._name)
        say("struck", pids=pids)
        await self._hold(running, say)
        self._sim.resume(self._name)
        say("healed")

    def _kill_runner(self, running: RunningScript, say: Callable[..., None]) -> None:
        """The one whose instance's ring has the port that was asked for."""
        logic, processes = self._sim.logic(self._name), self._sim.processes(self._name)
        if logic is None:
            raise _SkipScript("exo does not run")
        for process in processes[1:]:
            instance = logic.state.instance_of_runner(process.runner_id or "")
            if instance is not None and str(instance.port) == running.values.get("port"):
                self._sim.kill_runner(self._name, process.runner_id or "")
                say("struck", pids=identity(process.pid), main=identity(processes[0].pid))
                say("healed")
                return
        raise _SkipScript("no runner of that instance is there")

    async def _partition(self, running: RunningScript, say: Callable[..., None]) -> None:
        peers = {self._addresses[a] for a in running.values.get("peers", "").split() if a in self._addresses}
        if not peers:
            raise _SkipScript("no peer is known")
        direction = running.values.get("direction", "both")
        paths = {(self._name, peer) for peer in peers if direction in ("both", "out")}
        paths |= {(peer, self._name) for peer in peers if direction in ("both", "in")}
        for source, sink in paths:
            self._sim.cut(source, sink)
        say("struck", ipv4="proved", packets="1")
        await self._hold(running, say)
        self._sim.heal(paths)
        await asyncio.sleep(_PROOF_S)
        say("healed")
