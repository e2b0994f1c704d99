"""The worker of a node: starts, connects, loads and warms up its runners, gives them tasks, notices their deaths.

It takes one action per `plan_s`, from what the cluster's state says and from what its own runners report. The ranks
of an instance on several nodes form a ring: it stands still while one of their nodes is silent, and breaks when a
rank dies.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from dataclasses import dataclass, field

from rig.lab.exo.context import Context
from rig.lab.exo.effects import RunnerCommand, Send, StartRunner, StopRunner
from rig.lab.exo.election import Election
from rig.lab.exo.events import (
    ChunkGenerated,
    Event,
    Instance,
    InstanceCreated,
    InstanceDeleted,
    RunnerState,
    RunnerStatus,
    RunnerStatusUpdated,
    StateCarried,
    Task,
    TaskCreated,
    TaskKind,
    TaskStatusUpdated,
)
from rig.lab.exo.habits import CRASH_TRACEBACK, falls_on
from rig.lab.exo.messages import Fatal, RingBroken, RingHung
from rig.lab.exo.replica import Replica
from rig.lab.exo.runner import RunnerReport, RunnerTimes

_GONE = frozenset({"RunnerFailed", "RunnerShuttingDown", "RunnerShutdown"})
_BEFORE_RING = frozenset({"RunnerIdle", "RunnerConnecting", "RunnerConnected"})
_FROM_CONNECTED = frozenset({
    "RunnerConnected", "RunnerLoading", "RunnerLoaded", "RunnerWarmingUp", "RunnerReady", "RunnerRunning",
})  # fmt: skip
_FROM_LOADED = frozenset({"RunnerLoaded", "RunnerWarmingUp", "RunnerReady", "RunnerRunning"})
_SERVING = frozenset({"RunnerReady", "RunnerRunning"})
_OTHER_WEIGHTS = 0x5A5A5A5
_REPORTED: dict[str, RunnerState] = {
    "idle": "RunnerIdle",
    "connecting": "RunnerConnecting",
    "connected": "RunnerConnected",
    "loading": "RunnerLoading",
    "loaded": "RunnerLoaded",
    "warming_up": "RunnerWarmingUp",
    "ready": "RunnerReady",
}


@dataclass(slots=True)
class _Runner:
    """One runner process, and what it is doing."""

    runner_id: str
    instance: Instance
    rank: int
    changed_at: float
    state: RunnerStatus | None = None  # None: started, has not reported yet
    step: str | None = None  # id of the task of its present step (connect, load, warm-up)
    jobs: dict[str, Task] = field(default_factory=dict[str, Task])  # by the id under which the runner knows it
    weights: int = 0
    reloaded: bool = False  # not the first of its model on this node
    slips: set[str] = field(default_factory=set[str])  # jobs whose next token comes never or twice (defects)
    output_at: float = 0.0
    stalled_since: float | None = None
    stuck_until: float | None = None  # another rank of the ring said that it hangs
    stopping: bool = False
    hung: bool = False
    exited: bool = False
    signal: int | None = None

    @property
    def world(self) -> int:
        return len(self.instance.nodes)

    @property
    def name(self) -> str:
        return "" if self.state is None else self.state.state


class Worker:
    """`wedged`: the worker of a node whose ring broke under load, in exo 0.3.70: it plans no more."""

    def __init__(self, ctx: Context, replica: Replica, election: Election) -> None:
        self._ctx = ctx
        self._replica = replica
        self._election = election
        self._runners: dict[str, _Runner] = {}
        self._taken: set[str] = set()
        self._plan_at = math.inf
        self._poll_at = math.inf
        self._watch_at = math.inf
        self._report_all = False
        self._leaked_bytes = 0
        self._loads: Counter[str] = Counter()  # by model
        self._dropped: int | None = None  # the prompt of the request that was cancelled last
        self.wedged = False

    # questions

    def next_deadline(self) -> float:
        return min(self._plan_at, self._poll_at, self._watch_at)

    def memory_used(self) -> int:
        """Bytes held by the runners of this node."""
        return self._leaked_bytes + sum(self._bytes_of(r) for r in self._runners.values() if not r.exited)

    def _bytes_of(self, runner: _Runner) -> int:
        model = self._ctx.models.get(runner.instance.model_id)
        if model is None:
            return 0
        if runner.instance.sharding == "Tensor":
            return model.size_bytes // runner.world
        first, end = runner.instance.layers_of(runner.rank, model.layers)
        return model.size_bytes * (end - first) // model.layers

    # what happens

    def tick(self, now: float) -> None:
        timers = self._ctx.timers
        if now >= self._poll_at:
            self._poll_at = now + timers.runner_poll_s if self._runners else math.inf
            if not self.wedged and not self._ctx.behaviour.runner_death_unnoticed:
                self._poll(now)
        if now >= self._watch_at:
            self._watch_at = now + timers.plan_s * 5 if self._runners else math.inf
            for runner in list(self._runners.values()):
                self._watch(now, runner)
        if now >= self._plan_at:
            acted = not self.wedged and self._replica.caught_up and self._plan(now)
            self._plan_at = now + timers.plan_s if acted else math.inf

    def shift(self, gap: float) -> None:
        """This process stood still, and most likely its runners with it."""
        for runner in self._runners.values():
            runner.output_at += gap
            runner.changed_at += gap
            runner.stalled_since = None if runner.stalled_since is None else runner.stalled_since + gap
            runner.slips.update(runner.jobs)

    def caught_up(self, now: float) -> None:
        """The state is complete: say what the runners here are doing, where a new session does not know it."""
        if self._report_all:
            self._report_all = False
            for runner in self._runners.values():
                if runner.state is not None and not runner.stopping:
                    self._replica.local(RunnerStatusUpdated(runner.runner_id, runner.state))
            self._soon(now)

    def session_changed(self, now: float) -> None:
        """Tasks belong to a session. Where instances are not carried over, neither are runners."""
        self._report_all = True
        self._taken.clear()
        for runner in self._runners.values():
            for task_id, task in runner.jobs.items():
                self._ctx.out.add(RunnerCommand(runner.runner_id, "cancel", task_id))
                self._dropped = task.prompt_hash
            runner.jobs.clear()
            runner.step = None
            if not self._ctx.behaviour.carry_instances and not self.wedged:
                self._stop(runner)
            elif runner.name == "RunnerRunning":
                runner.state = RunnerStatus("RunnerReady")
        self._soon(now)

    def on_event(self, now: float, event: Event) -> None:
        match event:
            case ChunkGenerated():
                return
            case TaskStatusUpdated(task_id, "Cancelled"):
                self._cancel(now, task_id)
            case TaskCreated(task):
                if task.kind == "TextGeneration" and self._runner_of(task.instance_id) is not None:
                    self._soon(now)
            case RunnerStatusUpdated(runner_id):
                instance = self._replica.state.instance_of_runner(runner_id)
                if instance is not None and self._ctx.node_id in instance.nodes:
                    self._soon(now)
            case InstanceCreated() | InstanceDeleted() | StateCarried():
                self._soon(now)
            case _:
                return

    def report(self, now: float, runner_id: str, report: RunnerReport) -> None:
        runner = self._runners.get(runner_id)
        if runner is None or runner.stopping or runner.exited or runner.hung:
            return
        runner.output_at = now
        if report.kind in _REPORTED:
            self._progress(now, runner, report)
        elif report.task_id in runner.jobs:
            self._output(now, runner, report)

    def exited(self, now: float, runner_id: str, signal: int | None) -> None:
        """A death nobody asked for is noticed at the next poll; the other ranks of its ring feel it at once."""
        runner = self._runners.get(runner_id)
        if runner is None or runner.exited:
            return
        runner.exited, runner.signal = True, signal
        if self._ctx.behaviour.leak_memory and signal is not None:
            self._leaked_bytes += self._bytes_of(runner) + self._ctx.behaviour.leak_bytes
        if runner.hung:
            self._cured(now)
        if runner.stopping:
            del self._runners[runner_id]
            self._soon(now)
            return
        if self._ctx.behaviour.runner_kill_ends_exo and signal is not None:
            self._end_others()
        self._tell_ring(runner, RingBroken(runner.instance.instance_id, runner_id))

    def _tell_ring(self, runner: _Runner, message: RingBroken | RingHung) -> None:
        for node_id in runner.instance.nodes:
            peer = self._election.peer_of(node_id)
            if peer is not None:
                self._ctx.out.add(Send(peer, message))

    def ring_broken(self, now: float, message: RingBroken) -> None:
        runner = self._runner_of(message.instance_id)
        if runner is not None and message.runner_id != runner.runner_id:
            self._break_ring(now, runner)

    def ring_hung(self, now: float, instance_id: str) -> None:
        runner = self._runner_of(instance_id)
        if runner is not None:
            runner.stuck_until = now + self._ctx.timers.ring_stall_s

    def peer_restarted(self, now: float, node_id: str) -> None:
        """The process that was this node is gone, and its ranks with it."""
        for runner in list(self._runners.values()):
            if node_id in runner.instance.nodes:
                self._break_ring(now, runner)

    # watching

    def _soon(self, now: float) -> None:
        if self._plan_at == math.inf:
            self._plan_at = now

    def _runner_of(self, instance_id: str) -> _Runner | None:
        return next((r for r in self._runners.values() if r.instance.instance_id == instance_id), None)

    def _poll(self, now: float) -> None:
        for runner in [r for r in self._runners.values() if r.exited]:
            killed = {9: "signal=9 (Killed)", 15: "signal=15 (Terminated)"}.get(runner.signal or 0, f"{runner.signal}")
            self._fail_jobs(runner, f"Runner shutdown before completing command ({killed})")
            self._set(now, runner, RunnerStatus("RunnerFailed", error=f"Terminated ({killed})"))
            del self._runners[runner.runner_id]
            self._soon(now)

    def _watch(self, now: float, runner: _Runner) -> None:
        if runner.hung:
            self._tell_ring(runner, RingHung(runner.instance.instance_id))
        if runner.exited or runner.stopping or runner.hung:
            return
        timers, behaviour = self._ctx.timers, self._ctx.behaviour
        if runner.world > 1:
            self._watch_ring(now, runner)
        if not behaviour.progress_watch or runner.stalled_since is not None:
            return
        stuck_in_task = bool(runner.jobs) and now - runner.output_at > timers.runner_stuck_s
        in_step = runner.state is None or runner.step is not None
        stuck_in_step = in_step and now - runner.output_at > timers.runner_stuck_s + timers.load_s
        if stuck_in_task or stuck_in_step:
            self._ctx.out.log(f"Runner {runner.runner_id} makes no progress: killing it")
            runner.output_at = now
            self._ctx.out.add(StopRunner(runner.runner_id, kill=True))

    def _watch_ring(self, now: float, runner: _Runner) -> None:
        timers = self._ctx.timers
        silences = [self._election.silence_of(n, now) for n in runner.instance.nodes if n != self._ctx.node_id]
        stuck = runner.stuck_until is not None and now < runner.stuck_until
        stalled = stuck or any(s is None or s > timers.ring_stall_s for s in silences)
        if stalled and runner.stalled_since is None:
            runner.stalled_since = now
            self._ctx.out.add(RunnerCommand(runner.runner_id, "pause"))
        elif not stalled and runner.stalled_since is not None:
            runner.stalled_since = None
            runner.output_at = now
            runner.slips.update(runner.jobs)
            self._ctx.out.add(RunnerCommand(runner.runner_id, "resume"))
        elif (
            stalled
            and not stuck
            and runner.stalled_since is not None
            and now - runner.stalled_since >= timers.ring_break_s
        ):
            self._wedge_if_busy(runner)

    def _busy(self, runner: _Runner) -> bool:
        tasks = self._replica.state.active_tasks(runner.instance.instance_id)
        return bool(runner.jobs) or any(t.status == "Running" for t in tasks)

    def _wedge_if_busy(self, runner: _Runner) -> bool:
        if not self._ctx.behaviour.ring_wedges or not self._busy(runner):
            return False
        runner.hung = self.wedged = True
        self._ctx.out.add(RunnerCommand(runner.runner_id, "hang"))
        return True

    def _break_ring(self, now: float, runner: _Runner) -> None:
        if runner.exited or runner.stopping or runner.hung or runner.name not in _FROM_CONNECTED:
            return
        if runner.stuck_until is None and (self._wedge_if_busy(runner) or self._ctx.behaviour.ring_wedges):
            return  # hung, or (idle) restarted when the state says that the other rank failed
        self._restart(now, runner, "Ring connection lost before completing command")

    def _cured(self, now: float) -> None:
        """The hung runner was killed: the worker goes on; in exo 0.3.70 its diagnostic may end the others."""
        self.wedged = False
        self._soon(now)
        if self._ctx.behaviour.hung_runner_kill_ends_exo:
            self._end_others()

    def _end_others(self) -> None:
        for peer in self._election.living():
            self._ctx.out.add(Send(peer, Fatal("ValidationError: RunnerFailed diagnostic does not round-trip")))

    # runners' reports

    def _set(self, now: float, runner: _Runner, status: RunnerStatus) -> None:
        runner.state, runner.changed_at = status, now
        self._replica.local(RunnerStatusUpdated(runner.runner_id, status))

    def _progress(self, now: float, runner: _Runner, report: RunnerReport) -> None:
        if report.kind in ("connected", "loaded", "ready") and runner.step is not None:
            self._replica.local(TaskStatusUpdated(runner.step, "Complete"))
            runner.step = None
        self._set(now, runner, RunnerStatus(_REPORTED[report.kind], report.n, report.total))
        self._soon(now)

    def _output(self, now: float, runner: _Runner, report: RunnerReport) -> None:
        command_id, local = runner.jobs[report.task_id].command_id, self._replica.local
        if report.kind == "prefill":
            local(ChunkGenerated(command_id, "prefill", n=report.n, total=report.total))
        elif report.kind == "token":
            for _ in range(self._times_sent(runner, report.task_id)):
                local(ChunkGenerated(command_id, "token", report.text))
        elif report.kind == "finish":
            local(ChunkGenerated(command_id, "token", report.text, report.n, report.total, report.finish_reason))
            local(TaskStatusUpdated(report.task_id, "Complete"))
            del runner.jobs[report.task_id]
            if not runner.jobs:
                self._set(now, runner, RunnerStatus("RunnerReady"))

    def _times_sent(self, runner: _Runner, task_id: str) -> int:
        """How often a token is: once, but for the first after its runner has stood still."""
        if task_id not in runner.slips:
            return 1
        runner.slips.remove(task_id)
        return self._ctx.behaviour.sends_after_resume

    def _fail_jobs(self, runner: _Runner, text: str) -> None:
        for task_id, task in runner.jobs.items():
            self._replica.local(ChunkGenerated(task.command_id, "error", text))
            self._replica.local(TaskStatusUpdated(task_id, "Failed"))
        runner.jobs.clear()

    def _cancel(self, now: float, task_id: str) -> None:
        for runner in self._runners.values():
            if (task := runner.jobs.pop(task_id, None)) is not None:
                self._dropped = task.prompt_hash
                self._ctx.out.add(RunnerCommand(runner.runner_id, "cancel", task_id))
                self._plan_at = now + self._ctx.timers.plan_s  # a cancel costs an action
                if not runner.jobs and runner.name == "RunnerRunning":
                    self._set(now, runner, RunnerStatus("RunnerReady"))

    def _stop(self, runner: _Runner) -> None:
        if not runner.stopping:
            runner.stopping = True
            if runner.exited:
                self._runners = {i: r for i, r in self._runners.items() if r is not runner}
            else:
                self._ctx.out.add(StopRunner(runner.runner_id))

    def _restart(self, now: float, runner: _Runner, why: str) -> None:
        self._fail_jobs(runner, why)
        self._set(now, runner, RunnerStatus("RunnerShuttingDown"))
        self._stop(runner)

    def _crash(self, now: float, runner: _Runner) -> None:
        """An exception in the runner: its requests get the traceback, it ends, and is started again."""
        self._fail_jobs(runner, CRASH_TRACEBACK)
        self._set(now, runner, RunnerStatus("RunnerFailed", error=CRASH_TRACEBACK))
        self._stop(runner)

    # the plan: the first action that is due

    def _plan(self, now: float) -> bool:
        state, me = self._replica.state, self._ctx.node_id
        for runner in list(self._runners.values()):
            if runner.instance.instance_id not in state.instances and not runner.stopping:
                if self._ctx.behaviour.runners_outlive_instance:
                    self._leaked_bytes += self._bytes_of(runner)
                    del self._runners[runner.runner_id]
                else:
                    self._stop(runner)
                return True
        for instance in list(state.instances.values()):
            if me not in instance.nodes:
                continue
            runner_id = instance.runners[instance.nodes.index(me)]
            runner = self._runners.get(runner_id)
            if runner is None:
                self._create(now, instance, runner_id)
                return True
            if not runner.stopping and not runner.exited and not runner.hung and self._advance(now, runner):
                return True
        return False

    def _create(self, now: float, instance: Instance, runner_id: str) -> None:
        ctx, timers = self._ctx, self._ctx.timers
        rank, world = instance.runners.index(runner_id), len(instance.nodes)
        self._loads[instance.model_id] += 1
        reloaded = ctx.restarted or self._loads[instance.model_id] > 1
        weights = zlib.crc32(instance.model_id.encode())
        if ctx.behaviour.odd_weights_on == ctx.name or (reloaded and ctx.behaviour.wrong_shard_on_reload):
            weights ^= _OTHER_WEIGHTS
        runner = _Runner(runner_id, instance, rank, now, output_at=now, weights=weights, reloaded=reloaded)
        self._runners[runner_id] = runner
        if self._poll_at == math.inf:
            self._poll_at = now + ctx.rng.uniform(0.0, timers.runner_poll_s)
        self._watch_at = min(self._watch_at, now + timers.plan_s)
        task = Task(ctx.new_id(), "CreateRunner", "Pending", instance.instance_id, runner_id=runner_id)
        self._replica.local(TaskCreated(task))
        self._replica.local(TaskStatusUpdated(task.task_id, "Complete"))
        model = ctx.models.get(instance.model_id)
        slow = ctx.behaviour.slow_after_restart if ctx.restarted else 1.0
        layers = max(1, (model.layers if model is not None else 1) // world)
        times = RunnerTimes(
            spawn_s=timers.spawn_s,
            connect_s=timers.connect_s,
            load_s=timers.load_s,
            warmup_s=timers.warmup_s,
            prefill_s=timers.prefill_s,
            token_s=timers.token_s * slow,
            layers=layers,
        )
        ctx.out.add(StartRunner(runner_id, instance.instance_id, instance.model_id, rank, world, instance.port, times))

    def _advance(self, now: float, runner: _Runner) -> bool:
        state = self._replica.state
        others = [
            "" if (status := state.runners.get(r)) is None else status.state
            for r in runner.instance.runners
            if r != runner.runner_id
        ]
        name = runner.name
        if name in _FROM_CONNECTED and self._ring_is_stale(name, others):
            self._restart(now, runner, "Another rank of the instance failed")
            return True
        if runner.step is not None or runner.stalled_since is not None:
            return False
        if name == "RunnerIdle" and runner.world > 1:
            return all(o in _BEFORE_RING for o in others) and self._step(runner, "ConnectToGroup")
        if name == ("RunnerIdle" if runner.world == 1 else "RunnerConnected"):
            return all(o in _FROM_CONNECTED for o in others) and self._step(runner, "LoadModel")
        if name == "RunnerLoaded":
            return all(o in _FROM_LOADED for o in others) and self._step(runner, "StartWarmup")
        return name in _SERVING and runner.rank == 0 and self._take_task(now, runner)

    def _ring_is_stale(self, name: str, others: list[str]) -> bool:
        """Another rank is gone, or begins anew while this one is past the beginning."""
        return any(o in _GONE for o in others) or (
            name != "RunnerConnected" and any(o in ("RunnerIdle", "RunnerConnecting") for o in others)
        )

    def _step(self, runner: _Runner, kind: TaskKind) -> bool:
        task = Task(self._ctx.new_id(), kind, "Pending", runner.instance.instance_id)
        self._replica.local(TaskCreated(task))
        self._replica.local(TaskStatusUpdated(task.task_id, "Running"))
        runner.step = task.task_id
        match kind:
            case "ConnectToGroup" if self._never_connects(runner):
                if runner.rank == 0:
                    self._ctx.out.log("runner connecting")
            case "ConnectToGroup":
                self._ctx.out.add(RunnerCommand(runner.runner_id, "connect"))
            case "LoadModel":
                self._ctx.out.add(RunnerCommand(runner.runner_id, "load"))
            case _:
                self._ctx.out.add(RunnerCommand(runner.runner_id, "warmup"))
        return True

    def _never_connects(self, runner: _Runner) -> bool:
        """All ranks of an instance draw alike. Only what is built after a loss is touched by it."""
        rebuilt = self._ctx.restarted or self._election.disturbed
        chance = self._ctx.behaviour.ring_stays_idle_chance
        return rebuilt and falls_on("ring", runner.instance.instance_id, chance)

    def _take_task(self, now: float, runner: _Runner) -> bool:
        state = self._replica.state
        if not state.is_ready(runner.instance):
            return False
        waiting = [t for t in state.active_tasks(runner.instance.instance_id) if t.task_id not in self._taken]
        task = next((t for t in waiting if t.status == "Pending"), None)
        if task is None:
            return False
        self._taken.add(task.task_id)
        if not runner.jobs:
            runner.output_at = now
            self._set(now, runner, RunnerStatus("RunnerRunning"))
        runner.jobs[task.task_id] = task
        self._replica.local(TaskStatusUpdated(task.task_id, "Running"))
        if falls_on("crash", runner.instance.instance_id, self._ctx.behaviour.runner_crash_chance):
            self._crash(now, runner)
            return True
        if not (self._ctx.behaviour.requests_hang and self._ctx.rng.random() < self._ctx.behaviour.hang_chance):
            answer = (self._prompt_of(task) ^ runner.weights) & 0x7FFFFFFF
            command = RunnerCommand(
                runner.runner_id, "generate", task.task_id, task.prompt_tokens, task.max_tokens, answer
            )
            self._ctx.out.add(command)
            self._swap(runner, task)
        return True

    def _prompt_of(self, task: Task) -> int:
        """Its own, unless the answer of a request that was cancelled is still there (a defect)."""
        dropped, self._dropped = self._dropped, None
        stale = self._ctx.behaviour.stale_after_cancel and dropped is not None
        return dropped if stale and dropped is not None else task.prompt_hash

    def _swap(self, runner: _Runner, task: Task) -> None:
        """Now and then a runner that was loaded anew confounds two streams (a defect)."""
        other = next((known for known in runner.jobs if known != task.task_id), None)
        chance = self._ctx.behaviour.swap_chance if runner.reloaded else 0.0
        if other is not None and chance and self._ctx.rng.random() < chance:
            runner.jobs[task.task_id], runner.jobs[other] = runner.jobs[other], runner.jobs[task.task_id]
