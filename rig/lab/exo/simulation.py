"""Several nodes under virtual time in one process: network, crashes, freezes, partitions and runners included.

The simulation is a host for `NodeLogic` as a real process is one. Links behave as TCP connections do: in order, held
back while the path is cut, broken at once when a process dies on an open path. A frozen node gets nothing until it is
resumed, and then all of it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import count

from rig.lab.exo.api_types import Accepted, ChatRequest
from rig.lab.exo.behaviour import Behaviour, Timers
from rig.lab.exo.effects import (
    DropLink,
    Effect,
    EndStream,
    Exit,
    Log,
    MasterLog,
    RunnerCommand,
    Send,
    StartRunner,
    StopRunner,
    StreamPrefill,
    StreamToken,
)
from rig.lab.exo.messages import AnyMessage
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.runner import RunnerLogic
from rig.lab.exo.simulated import Conn, Process, Request, Seen, SimNode, SimRunner, Sink

_HTTP_ERROR = 400
_LEAST_WAIT_S = 0.0005  # a process does not wake more often
_TRAVEL_S = 0.002
_STOP_S = 0.05  # from asking a runner to end to its end
_MAX_LOG = 20_000  # lines kept a node


class Simulation:
    """`now` is virtual seconds. `run_until` moves time; the other calls act at once. Everything follows from `seed`."""

    def __init__(self, names: Sequence[str], *, behaviour: Behaviour, timers: Timers, seed: int) -> None:
        self.now = 0.0
        self.requests: list[Request] = []
        self._behaviour = behaviour
        self._timers = timers
        self._rng = random.Random(seed)
        self._order = count()
        self._pids = count(1001)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._nodes = {name: SimNode(name) for name in names}
        self._cut: set[tuple[str, str]] = set()
        for name in names:
            self.start(name)
        self._dial()

    # what can be looked at

    @property
    def names(self) -> list[str]:
        return list(self._nodes)

    def logic(self, name: str) -> NodeLogic | None:
        """The node's logic; None while its process is dead."""
        return self._nodes[name].logic

    def is_frozen(self, name: str) -> bool:
        return self._nodes[name].frozen

    def log(self, name: str) -> list[tuple[float, str]]:
        """exo's log of this node, over all its lives: (time, line)."""
        return self._nodes[name].log

    def runners(self, name: str) -> list[str]:
        """Ids of runner processes that live."""
        return [i for i, r in self._nodes[name].runners.items() if r.alive]

    def processes(self, name: str) -> list[Process]:
        """The main process and its runners; none when it is dead."""
        node = self._nodes[name]
        if node.logic is None:
            return []
        main = Process(node.pid, None, self._cpu_used(node.began, spins=self._behaviour.spin_when_idle))
        return [main, *(Process(r.pid, i, self._runner_cpu(r)) for i, r in node.runners.items() if r.alive)]

    def orphans(self, name: str) -> list[Process]:
        """Runners whose main process ended and left them."""
        return self._nodes[name].orphans

    def memory_used(self, name: str) -> int:
        """Bytes that are not available on the node."""
        node = self._nodes[name]
        return node.kept_bytes + (0 if node.logic is None else node.logic.memory_used)

    def _runner_cpu(self, runner: SimRunner) -> float:
        spins_from = runner.asked if self._behaviour.runners_spin else None
        return self._cpu_used(runner.began if spins_from is None else spins_from, spins=spins_from is not None)

    def _cpu_used(self, began: float, *, spins: bool) -> float:
        """CPU seconds since then: a few per cent, or all of a CPU."""
        return (self.now - began) * (1.0 if spins else 0.04)

    def next_at(self) -> float:
        """When something is to happen next."""
        return self._agenda[0][0] if self._agenda else float("inf")

    def reaches(self, source: str, sink: str) -> bool:
        return (source, sink) not in self._cut and (sink, source) not in self._cut

    # time

    def run_until(self, t: float) -> None:
        while self._agenda and self._agenda[0][0] <= t:
            at, _, act = heapq.heappop(self._agenda)
            self.now = max(self.now, at)
            act()
        self.now = max(self.now, t)

    def at(self, t: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (t, next(self._order), act))

    # faults

    def start(self, name: str) -> None:
        """Start the node's process, if it has none."""
        node = self._nodes[name]
        if node.logic is not None:
            return
        node.life += 1
        node.pid, node.began = next(self._pids), self.now
        index = list(self._nodes).index(name) + 1
        logic = NodeLogic(
            name,
            f"10.77.0.{index}",
            [n for n in self._nodes if n != name],
            behaviour=self._behaviour,
            timers=self._timers,
            rng=random.Random(self._rng.getrandbits(64)),
            restarted=node.life > 1,
        )
        node.logic = logic
        self._carry_out(node, logic.start(self.now))

    def crash(self, name: str) -> None:
        """SIGKILL of the whole tree, frozen or not."""
        node = self._nodes[name]
        node.logic, node.frozen, node.tick_at = None, False, float("inf")
        node.deferred.clear()
        for runner in node.runners.values():
            runner.alive = False
            if self._behaviour.leak_memory:
                node.kept_bytes += self._behaviour.leak_bytes
        node.runners.clear()
        for request in (*node.requests.values(), *node.unanswered):
            self._end(request, "broken")
        node.requests.clear()
        node.unanswered.clear()
        for peer, conn in list(node.conns.items()):
            self._deliver(conn, name, peer, lambda p=peer, c=conn: self._closed(p, name, c))
        node.conns.clear()

    def freeze(self, name: str) -> None:
        """SIGSTOP of the whole tree."""
        if self._nodes[name].logic is not None:
            self._nodes[name].frozen = True

    def resume(self, name: str) -> None:
        node = self._nodes[name]
        if not node.frozen:
            return
        node.frozen = False
        waiting, node.deferred = node.deferred, []
        self._tick(node)
        for act in waiting:
            act()
        for runner_id in list(node.runners):
            self._tick_runner(node, runner_id)

    def kill_runner(self, name: str, runner_id: str) -> None:
        node = self._nodes[name]
        runner = node.runners.get(runner_id)
        if runner is not None and runner.alive:
            self._runner_ended(node, runner_id, 9)

    def partition(self, side: Sequence[str]) -> None:
        """Cut `side` off from the others, both ways."""
        others = [n for n in self._nodes if n not in side]
        self._cut |= {(a, b) for a in side for b in others} | {(b, a) for a in side for b in others}

    def cut(self, source: str, sink: str) -> None:
        """One way."""
        self._cut.add((source, sink))

    def heal(self, paths: set[tuple[str, str]] | None = None) -> None:
        """Every path (or these) is open again, and what was held back arrives."""
        self._cut -= set(self._cut) if paths is None else paths
        for node in self._nodes.values():
            for conn in list(node.conns.values()):
                self._release(conn)

    # clients

    def chat(self, name: str, request: ChatRequest, sink: Sink | None = None) -> Request:
        """`sink` is told of everything the client is sent; without one the request is kept in `requests`."""
        node = self._nodes[name]
        made = Request(name, request.model, request.streamed, self.now, sink=sink)
        if sink is None:
            self.requests.append(made)
        if node.logic is None:
            self._end(made, "refused")
        else:
            node.unanswered.append(made)
            self._call(node, lambda: self._chat(node, request, made))
        return made

    def _chat(self, node: SimNode, request: ChatRequest, made: Request) -> None:
        node.unanswered.remove(made)
        if node.logic is None:
            return
        answer, effects = node.logic.chat(self.now, request)
        if isinstance(answer, Accepted):
            made.id = answer.command_id
            node.requests[made.id] = made
            self._show(made, answer)
        else:
            self._show(made, answer)
            self._end(made, f"http {answer.status}" if answer.status >= _HTTP_ERROR else "finish")
        self._carry_out(node, effects)

    def leave(self, request: Request) -> None:
        """The client closes its connection."""
        node = self._nodes[request.node]
        request.sink = None
        if node.requests.pop(request.id, None) is not None:
            self._tell(node, lambda logic: logic.client_gone(self.now, request.id))

    def _show(self, request: Request, seen: Seen) -> None:
        if request.sink is not None:
            request.sink(seen)

    def _end(self, request: Request, how: str, message: str = "") -> None:
        request.how, request.ended, request.message = how, self.now, message
        if how in ("broken", "refused"):
            self._show(request, None)

    # nodes

    def ask(self, name: str, act: Callable[[NodeLogic, float], tuple[object, list[Effect]]]) -> object:
        """Anything else of a node's API, e.g. `lambda n, t: n.create_deployment(t, "lab/tiny-a")`; its answer."""
        node = self._nodes[name]
        if node.logic is None:
            return None
        answer, effects = act(node.logic, self.now)
        self._carry_out(node, effects)
        return answer

    def _call(self, node: SimNode, act: Callable[[], None]) -> None:
        if node.frozen:
            node.deferred.append(act)
        else:
            act()

    def _tell(self, node: SimNode, tell: Callable[[NodeLogic], list[Effect]]) -> None:
        """A call to the logic now, or on its resumption; void when its process has died by then."""
        life = node.life

        def act() -> None:
            if node.logic is not None and node.life == life:
                self._carry_out(node, tell(node.logic))

        self._call(node, act)

    def _tick(self, node: SimNode) -> None:
        if node.logic is not None and not node.frozen:
            node.tick_at = float("inf")
            self._carry_out(node, node.logic.tick(self.now))

    def _schedule(self, node: SimNode) -> None:
        if node.logic is None:
            return
        due = max(node.logic.next_deadline(), self.now + _LEAST_WAIT_S)
        if due < node.tick_at:
            node.tick_at = due
            self.at(due, lambda: self._tick(node) if node.tick_at == due else None)

    def _carry_out(self, node: SimNode, effects: list[Effect]) -> None:
        for effect in effects:
            self._carry_out_one(node, effect)
        self._schedule(node)

    def _carry_out_one(self, node: SimNode, effect: Effect) -> None:
        match effect:
            case Send(peer, message):
                self._send(node, peer, message)
            case DropLink(peer):
                self._drop(node, peer)
            case StartRunner() | StopRunner() | RunnerCommand():
                self._to_runner(node, effect)
            case StreamToken() | StreamPrefill() | EndStream():
                self._to_client(node, effect)
            case Log(text):
                node.log.append((self.now, text))
                if len(node.log) > _MAX_LOG:
                    del node.log[: _MAX_LOG // 2]
            case Exit():
                self.at(self.now, lambda: self._exit(node))
            case MasterLog():
                pass

    def _exit(self, node: SimNode) -> None:
        """The main process ends by itself; its runners with it, unless they are left behind."""
        if not self._behaviour.runners_end_with_main:
            node.orphans += self.processes(node.name)[1:]
        self.crash(node.name)

    def _to_client(self, node: SimNode, effect: StreamToken | StreamPrefill | EndStream) -> None:
        request = node.requests.get(effect.command_id)
        if request is None:
            return
        match effect:
            case StreamToken():
                request.tokens += 1
            case EndStream(how=how, message=message):
                self._end(node.requests.pop(effect.command_id), how, message)
            case StreamPrefill():
                pass
        self._show(request, effect)

    def _to_runner(self, node: SimNode, effect: StartRunner | StopRunner | RunnerCommand) -> None:
        runner_id = effect.runner_id
        match effect:
            case StartRunner(times=times):
                node.runners[runner_id] = SimRunner(RunnerLogic(times, self.now), next(self._pids), self.now)
                self._schedule_runner(node, runner_id)
            case StopRunner(kill=kill):
                self.at(self.now + _STOP_S, lambda: self._stop_runner(node, runner_id, kill=kill))
            case RunnerCommand(kind=kind, task_id=task_id, prompt_tokens=prompt, max_tokens=tokens, answer=answer):
                runner = node.runners.get(runner_id)
                if runner is not None:
                    if kind == "generate" and runner.asked is None:
                        runner.asked = self.now
                    runner.logic.command(self.now, kind, task_id, prompt, tokens, answer)
                    self._schedule_runner(node, runner_id)

    # runners

    def _stop_runner(self, node: SimNode, runner_id: str, *, kill: bool) -> None:
        runner = node.runners.get(runner_id)
        if runner is not None and runner.alive:
            self._runner_ended(node, runner_id, 9 if kill else None)

    def _runner_ended(self, node: SimNode, runner_id: str, signal: int | None) -> None:
        node.runners.pop(runner_id).alive = False
        self._tell(node, lambda logic: logic.runner_exited(self.now, runner_id, signal))

    def _schedule_runner(self, node: SimNode, runner_id: str) -> None:
        runner = node.runners[runner_id]
        due = runner.logic.next_deadline()
        if due is not None and due < runner.tick_at:
            at = max(due, self.now)
            runner.tick_at = at
            self.at(at, lambda: self._runner_due(node, runner_id, runner, at))

    def _runner_due(self, node: SimNode, runner_id: str, runner: SimRunner, at: float) -> None:
        if runner.alive and runner.tick_at == at and not node.frozen:
            self._tick_runner(node, runner_id)

    def _tick_runner(self, node: SimNode, runner_id: str) -> None:
        runner = node.runners.get(runner_id)
        if runner is None or node.logic is None:
            return
        runner.tick_at = float("inf")
        for report in runner.logic.tick(self.now):
            self._carry_out(node, node.logic.runner_report(self.now, runner_id, report))
        if runner_id in node.runners:
            self._schedule_runner(node, runner_id)

    # network

    def _dial(self) -> None:
        """Every node tries the peers it has no link to; the lower name dials."""
        names = sorted(self._nodes)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                self._try(self._nodes[a], self._nodes[b])
        self.at(self.now + self._timers.redial_s * self._rng.uniform(0.8, 1.2), self._dial)

    def _try(self, a: SimNode, b: SimNode) -> None:
        open_path = (a.name, b.name) not in self._cut and (b.name, a.name) not in self._cut
        if a.logic is None or a.frozen or b.logic is None or b.name in a.conns or not open_path:
            return
        conn = Conn((a.name, b.name))
        a.conns[b.name] = conn
        b.conns[a.name] = conn
        self._tell(a, lambda logic: logic.link_up(self.now, b.name))
        self._tell(b, lambda logic: logic.link_up(self.now, a.name))

    def _send(self, node: SimNode, peer: str, message: AnyMessage) -> None:
        conn = node.conns.get(peer)
        if conn is not None:
            self._deliver(conn, node.name, peer, lambda: self._arrive(conn, node.name, peer, message))

    def _deliver(self, conn: Conn, source: str, sink: str, act: Callable[[], None]) -> None:
        self.at(self.now + _TRAVEL_S, lambda: self._pass(conn, source, sink, act))

    def _pass(self, conn: Conn, source: str, sink: str, act: Callable[[], None]) -> None:
        held = conn.held.setdefault((source, sink), [])
        if (source, sink) in self._cut or held:
            held.append(act)
        else:
            act()

    def _release(self, conn: Conn) -> None:
        for direction, held in list(conn.held.items()):
            if direction not in self._cut:
                conn.held[direction] = []
                for act in held:
                    act()

    def _arrive(self, conn: Conn, source: str, sink: str, message: AnyMessage) -> None:
        node = self._nodes[sink]
        if node.conns.get(source) is conn:
            # What was queued on a connection is lost when it is replaced, also while the process is stopped.
            self._tell(
                node,
                lambda logic: logic.receive(self.now, source, message) if node.conns.get(source) is conn else [],
            )

    def _drop(self, node: SimNode, peer: str) -> None:
        conn = node.conns.pop(peer, None)
        if conn is not None:
            self._deliver(conn, node.name, peer, lambda: self._closed(peer, node.name, conn))
            self._tell(node, lambda logic: logic.link_down(self.now, peer))

    def _closed(self, name: str, peer: str, conn: Conn) -> None:
        node = self._nodes[name]
        if node.conns.get(peer) is conn:
            del node.conns[peer]
            self._tell(node, lambda logic: logic.link_down(self.now, peer))
