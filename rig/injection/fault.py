"""One fault from plan to end: planned → leased → struck → holding → healed, or skipped, ineffective, invalid, unhealed.

The scripts on the nodes act; this follows them, maps their times to the run's clock by an offset measured right
before, asks for an account of its own (`verify`), and writes each state to the journal. A fault with several scripts
has reached a state when all of them have; when one of them cannot strike, the others are healed at once. Whatever ends
this early (a signal, a cancellation) heals first.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from rig.clock import Clock
from rig.errors import NodeError
from rig.injection.act import Progress, Watcher, told_to_heal
from rig.injection.aim import Aim, AimContext, CannotAim, resolve
from rig.injection.outcome import detail, evidence, outcome
from rig.injection.rebooting import watcher_of
from rig.injection.schedule import Planned
from rig.injection.verify import Account, Outside, look_at_processes
from rig.journal.records import (
    AnyRecord,
    ClockOffset,
    FaultChanged,
    FaultState,
    Finding,
    Look,
    NodeMemory,
    NodeProcesses,
)
from rig.nodes.inspect import Inspection
from rig.nodes.offset import Offset, measure

HEAL_NOW_S = 40.0  # of an early heal; it takes well under 2 s when nodes answer and the target starts as usual
SYNC_LEAD_S = 2.0  # several scripts prepare for so long, then strike at the same moment
_ORDER: tuple[FaultState, ...] = ("leased", "struck", "holding")


class Recorder(Clock, Protocol):
    """The journal, as far as a fault needs it."""

    def write(self, record: AnyRecord) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who strikes: goes into the lease, for people who find one."""

    run: str
    owner: str


@dataclass
class Fault:
    """Use once: `await fault.run(stop)` returns the last state. `state` and `aim` may be read at any time."""

    planned: Planned
    context: AimContext
    journal: Recorder
    identity: Identity
    state: FaultState = "planned"
    aim: Aim | None = None
    due_t: float = 0.0  # when it is to strike
    struck_t: float | None = None
    healed_t: float | None = None
    reason: str = ""  # of the last state
    cut_short: bool = False  # it was healed before its time by somebody else
    _watchers: list[Watcher] = field(default_factory=list[Watcher])
    _offsets: dict[str, Offset] = field(default_factory=dict[str, Offset])
    _accounts: list[Account] = field(default_factory=list[Account])
    _verifying: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _outside: Outside | None = None
    _healing: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        run = re.sub(r"[^A-Za-z0-9._-]", "-", self.identity.run).lstrip("._-")[:32] or "run"
        self.id = f"{run}.{self.planned.index if self.planned.index >= 0 else 'hand'}.{secrets.token_hex(3)}"

    async def run(self, stop: asyncio.Event, due_t: float | None = None) -> FaultState:
        """Strikes (at `due_t` on the run's clock, or as soon as all is prepared), holds and heals.

        When `stop` is set the hold ends early. Never raises NodeError.
        """
        self.due_t = max(self.journal.now(), due_t or 0.0)
        self._write("planned", self.due_t)
        try:
            self.aim = aim = await resolve(self.planned, self.context, stop)
            await self._prepare(aim)
        except CannotAim as exc:
            return self._end("skipped", str(exc))
        except NodeError as exc:
            return self._end("skipped", f"nothing was struck: {exc}")
        if stop.is_set():
            return self._end("skipped", "the run was stopped before the strike", stopped=True)
        acting = asyncio.create_task(self._act(aim))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({acting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not acting.done():
                self._heal_early()
            await acting
            return await self._conclude(aim)
        except asyncio.CancelledError:
            await self._heal_before_leaving(acting)
            raise
        finally:
            stopping.cancel()
            for task in self._verifying:
                task.cancel()

    async def _prepare(self, aim: Aim) -> None:
        """Offsets and, for a partition, who can reach whom: right before the strike. Raises NodeError."""
        for text in aim.findings:
            self.journal.write(Finding(t=self.journal.now(), code="aim", text=text, data={"fault": self.planned.index}))
        if aim.partial:
            data = {"fault": self.planned.index}
            self.journal.write(Finding(t=self.journal.now(), code="partial-cut", text=aim.partial, data=data))
        if self.planned.kind.cuts:
            self._outside = Outside(self.context.nodes, aim)
        await asyncio.gather(
            *(self._measure(act.node) for act in aim.acts),
            self._outside.look_before() if self._outside is not None else asyncio.sleep(0),
        )

    async def _measure(self, name: str) -> None:
        offset = await measure(self.context.nodes[name], self.journal)
        self._offsets[name] = offset
        self.journal.write(
            ClockOffset(t=self.journal.now(), node=name, offset_s=offset.offset_s, error_s=offset.error_s)
        )

    async def _act(self, aim: Aim) -> None:
        """Runs all scripts to their ends."""
        planned = self.planned
        self._watchers = [
            watcher_of(act)(self.context.nodes[act.node], act, self.id, planned.hold_s, self._changed)
            for act in aim.acts
        ]
        common = {"id": self.id, "run": self.identity.run, "owner": self.identity.owner}
        if planned.kind.hold != "none":
            common["hold"] = f"{planned.hold_s:.3f}"
        lead_s = SYNC_LEAD_S if len(aim.acts) > 1 else 0.0
        at_t = max(self.due_t, self.journal.now() + lead_s)
        await asyncio.gather(
            *(
                watcher.run(common | {"at": f"{self._offsets[act.node].to_node(at_t):.3f}"})
                for watcher, act in zip(self._watchers, aim.acts, strict=True)
            )
        )

    def _changed(self) -> None:
        """After every event of a script: the states that all have reached are written, in order."""
        for state in _ORDER:
            reached = [progress.first(state) for progress in self._progress]
            if all(reached) and (self.state == "planned" or _ORDER.index(state) > _ORDER.index(self.state)):
                at_t, error_s = self._moment(state, last=False)
                if state == "struck":
                    self.struck_t = at_t
                    self._verify(at_t)
                self._write(state, at_t, error_s)
        failed = [one for one in self._progress if one.end not in (None, "healed") or one.first("ineffective")]
        if failed and len(self._progress) > 1:
            self._heal_early()

    def _verify(self, struck_t: float) -> None:
        if self._outside is not None:
            over_t = struck_t + self.planned.hold_s - 0.1
            self._verify_by(self._look_from_outside(self._outside, over_t))
        else:
            for watcher in self._watchers:
                self._verify_by(self._look_at(watcher))

    def _verify_by(self, looking: Coroutine[None, None, None]) -> None:
        self._verifying.add(asyncio.create_task(looking))

    async def _look_at(self, watcher: Watcher) -> None:
        self._accounts.append(await look_at_processes(watcher.conn, watcher.progress, self.planned.hold_s))

    async def _look_from_outside(self, outside: Outside, over_t: float) -> None:
        self._accounts.append(await outside.look_after(lambda: self.journal.now() < over_t and self._all_in_force()))

    def _all_in_force(self) -> bool:
        return all(one.in_force and one.first("healing") is None for one in self._progress)

    def _heal_early(self) -> None:
        if self._healing is None:
            self._healing = asyncio.create_task(self._heal_now())

    async def _heal_now(self) -> None:
        await asyncio.gather(*(watcher.heal(HEAL_NOW_S) for watcher in self._watchers if watcher.progress.end is None))

    async def _heal_before_leaving(self, acting: asyncio.Task[None]) -> None:
        """On cancellation: heal, and see the scripts end, within bounds. A further cancellation changes nothing."""
        if not acting.done():
            self._heal_early()
        both = [task for task in (self._healing, acting) if task is not None]
        leaving = asyncio.ensure_future(asyncio.wait(both, timeout=HEAL_NOW_S + 2.0))
        while not leaving.done():
            try:
                await asyncio.shield(leaving)
            except asyncio.CancelledError:
                continue
        acting.cancel()
        states = [progress.end for progress in self._progress]
        if states and all(end is not None for end in states):
            self._end(outcome(self._progress), detail(self._progress))
        elif any(progress.in_force for progress in self._progress):
            self._end("unhealed", "the run was cancelled and the nodes did not answer; they heal by themselves")

    async def _conclude(self, aim: Aim) -> FaultState:
        """The last state, after a look of our own at what the nodes hold."""
        if self._verifying:
            await asyncio.wait(self._verifying, timeout=6.0)
        if self._healing is not None:
            await self._healing
        state, reason = outcome(self._progress), detail(self._progress)
        if state != "unhealed" and any(progress.first("leased") for progress in self._progress):
            left = await self._left_behind(aim)
            if left:
                state, reason = "unhealed", "; ".join(filter(None, (left, reason)))
        self.cut_short = state == "healed" and self._healing is None and any(map(told_to_heal, self._progress))
        if self.cut_short:
            reason = "; ".join(
                filter(None, ("the hold was cut short by a signal from elsewhere (`rig heal`?)", reason))
            )
        disagreeing = [account for account in self._accounts if account.says == "disagrees"]
        if disagreeing and state == "healed":
            state = "ineffective"
            reason = "the script says it struck, but " + "; ".join(f"{one.node}: {one.text}" for one in disagreeing)
        return self._end(state, reason)

    async def _left_behind(self, aim: Aim) -> str:
        """What is still there of this fault, in words; also when it cannot be known. Journals memory on the way."""
        names = [act.node for act in aim.acts]
        seen = await asyncio.gather(
            *(self.context.nodes[name].inspect("all") for name in names), return_exceptions=True
        )
        left: list[str] = []
        for name, one in zip(names, seen, strict=True):
            if isinstance(one, Inspection):
                write_inventory(self.journal, one, "after", self.planned.index)
                left += [f"{name} still has the lease" for lease in one.leases if lease.id == self.id]
                if self._freezes(one.node) and (asleep := [p for p in one.tree if p.state == "T"]):
                    left.append(f"{name}: {len(asleep)} processes are still stopped")
            elif isinstance(one, NodeError):
                left.append(f"whether {name} healed is not known: {one.message}")
            else:
                raise one
        return "; ".join(left)

    def _freezes(self, node: str) -> bool:
        return any(one.act.node == node and one.act.kind.effect == "tree-stopped" for one in self._progress)

    @property
    def _progress(self) -> list[Progress]:
        return [watcher.progress for watcher in self._watchers]

    def _end(self, state: FaultState, reason: str, *, stopped: bool = False) -> FaultState:
        at_t, error_s = self._moment(state, last=True)
        if state == "healed":
            self.healed_t = at_t
        self.reason = reason
        self._write(state, at_t, error_s, reason, stopped=stopped)
        return state

    def _moment(self, state: str, *, last: bool) -> tuple[float, float]:
        """When the scripts entered a state, on the run's clock, with its error; now, when they did not say."""
        times: list[tuple[float, float]] = []
        for progress in self._progress:
            event = progress.first(state)
            if event is not None and (offset := self._offsets.get(progress.act.node)) is not None:
                times.append(offset.moment(event.node_t))
        if not times:
            return self.journal.now(), 0.0
        chosen = max(times) if last else min(times)
        spread = max(times)[0] - min(times)[0]
        return chosen[0], max(error for _, error in times) + (spread if len(times) > 1 and not last else 0.0)

    def _write(
        self, state: FaultState, at_t: float, error_s: float = 0.0, reason: str = "", *, stopped: bool = False
    ) -> None:
        self.state = state
        aim, planned = self.aim, self.planned
        self.journal.write(
            FaultChanged(
                t=self.journal.now(),
                fault=planned.index,
                fault_kind=planned.kind.name,
                state=state,
                aim=planned.aim,
                nodes=list(aim.nodes) if aim else [],
                processes_hit=list(aim.processes_hit) if aim else [],
                model=aim.model if aim else planned.model,
                hold_s=planned.hold_s,
                clients_cut=list(aim.clients_cut) if aim else [],
                direction=planned.direction,
                halves={half.node: half.kind.name for half in planned.halves},
                stopped=stopped,
                at_t=at_t,
                at_error_s=error_s,
                reason=reason,
                evidence=evidence(self.id, self._progress, self._accounts, aim) if state != "planned" else {},
            )
        )


def write_inventory(journal: Recorder, seen: Inspection, look: Look, fault: int | None = None) -> None:
    """Journal the memory and the processes of a node, as an inspection of all found them."""
    t = journal.now()
    journal.write(
        NodeMemory(
            t=t,
            node=seen.node,
            look=look,
            fault=fault,
            available_bytes=seen.mem_available_bytes,
            wired_bytes=seen.mem_wired_bytes,
        )
    )
    journal.write(
        NodeProcesses(
            t=t,
            node=seen.node,
            look=look,
            fault=fault,
            main=None if seen.main is None else seen.main.identity,
            orphans=len(seen.orphans),
            cpu_s=seen.main_cpu_s,
            worker_cpu_s={one.identity: seen.cpu_s[one.pid] for one in seen.workers if one.pid in seen.cpu_s},
            node_t=seen.clock,
        )
    )
