"""Random faults under virtual time: a sound cluster keeps its promises whatever happens, a flawed one does not."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

import pytest

from rig.lab.exo.api_types import ChatRequest
from rig.lab.exo.behaviour import Behaviour, Timers, exo_0_3_70, sound, timers_for
from rig.lab.exo.events import InstanceCreated, InstanceDeleted, StateCarried
from rig.lab.exo.messages import Session
from rig.lab.exo.simulation import Request, Simulation

MODELS = {"lab/tiny-a": 1, "lab/tiny-b": 2}
FAULTS_UNTIL_S = 420.0
SETTLE_S = 60.0
BOUND_S = (
    150.0  # a stopped node's clients wait for it (45 s), then at most a minute without progress, and some elections
)
SEEDS = range(10)


@dataclass
class Reign:
    """What a master's log said, as seen every `POLL_S`."""

    seen_at: float
    read: int = 0
    present: dict[str, str] = field(default_factory=dict[str, str])
    placed_at: list[float] = field(default_factory=list[float])
    doubled: list[str] = field(default_factory=list[str])


POLL_S = 0.1


class Observer:
    """Reads the log of every master as it grows."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.reigns: dict[Session, Reign] = {}
        self._watch()

    def _watch(self) -> None:
        for name in self.sim.names:
            logic = self.sim.logic(name)
            if logic is None or not logic.is_master or self.sim.is_frozen(name):
                continue
            reign = self.reigns.setdefault(logic.session, Reign(self.sim.now))
            log = logic.replica.log
            for entry in log.read(reign.read, log.next_index - reign.read):
                self._read(reign, entry.event)
            reign.read = log.next_index
        self.sim.at(self.sim.now + POLL_S, self._watch)

    def _read(self, reign: Reign, event: object) -> None:
        match event:
            case StateCarried():
                reign.present = {i.instance_id: i.model_id for i in event.instances}
            case InstanceCreated(instance):
                if instance.model_id in reign.present.values():
                    reign.doubled.append(instance.model_id)
                reign.present[instance.instance_id] = instance.model_id
                reign.placed_at.append(self.sim.now)
            case InstanceDeleted(instance_id):
                reign.present.pop(instance_id, None)
            case _:
                pass


class Scenario:
    """One seed: a cluster, load, and faults that may overlap."""

    def __init__(self, behaviour: Behaviour, seed: int) -> None:
        self.rng = random.Random(seed)
        names = [f"n{i}" for i in range(1, self.rng.choice((3, 3, 4, 5)) + 1)]
        timers = replace(timers_for(behaviour), token_s=self.rng.choice((0.02, 0.2)))
        self.timers: Timers = timers
        self.sim = Simulation(names, behaviour=behaviour, timers=timers, seed=seed)
        self.observer = Observer(self.sim)
        self.last_fault_end = 0.0
        self.faults: list[str] = []

    def run(self) -> None:
        sim = self.sim
        sim.run_until(8.0)
        for model, min_nodes in MODELS.items():
            sim.ask("n1", lambda n, t, m=model, k=min_nodes: n.create_deployment(t, m, min_nodes=k))
        sim.run_until(45.0)
        self._load()
        self._fault()
        sim.run_until(FAULTS_UNTIL_S + 60.0)  # holds of the last faults end by then
        sim.run_until(self.last_fault_end + SETTLE_S)

    def _load(self) -> None:
        sim, rng = self.sim, self.rng
        if sim.now < FAULTS_UNTIL_S + 60.0:
            request = ChatRequest(
                rng.choice(list(MODELS)), streamed=rng.random() < 0.7, prompt_tokens=10, max_tokens=rng.randint(1, 30)
            )
            sim.chat(rng.choice(sim.names), request)
            sim.at(sim.now + rng.uniform(0.1, 1.2), self._load)

    def _fault(self) -> None:
        sim, rng = self.sim, self.rng
        if sim.now >= FAULTS_UNTIL_S:
            return
        kind = rng.choice(("crash", "master", "freeze", "runner", "runner", "partition", "one-way"))
        name = rng.choice(sim.names)
        hold = rng.uniform(1.0, 45.0)
        masters = [n for n in sim.names if (logic := sim.logic(n)) is not None and logic.is_master]
        if kind == "master" and masters:
            kind, name = "crash", rng.choice(masters)
        if kind == "crash" and not self._known_without(name):
            kind = "runner"  # state lives in memory: with its last holder it is gone, soundly
        self.faults.append(f"{sim.now:.1f} {kind} {name} {hold:.1f}")
        match kind:
            case "crash":
                sim.crash(name)
                sim.at(sim.now + hold / 3, lambda: sim.start(name))
            case "freeze":
                sim.freeze(name)
                sim.at(sim.now + hold, lambda: sim.resume(name))
            case "runner":
                for runner_id in sim.runners(name)[:1]:
                    sim.kill_runner(name, runner_id)
                hold = 0.0
            case "partition":
                sim.partition([name])
                sim.at(sim.now + hold, sim.heal)
            case _:
                sim.cut(name, rng.choice([n for n in sim.names if n != name]))
                sim.at(sim.now + hold, sim.heal)
        self.last_fault_end = max(self.last_fault_end, sim.now + hold)
        sim.at(sim.now + rng.choice((rng.uniform(0.5, 8.0), rng.uniform(20.0, 90.0))), self._fault)

    def _known_without(self, name: str) -> bool:
        others = [logic for n in self.sim.names if n != name and (logic := self.sim.logic(n)) is not None]
        return any(len(logic.state.deployments) == len(MODELS) for logic in others)

    def overdue(self) -> list[Request]:
        """Requests that are open after the bound, or took longer than it."""
        end = self.sim.now
        return [r for r in self.sim.requests if (r.ended if r.ended is not None else end) - r.started > BOUND_S]

    def silent_ends(self) -> list[Request]:
        """Ends by which a client cannot tell what happened."""
        return [r for r in self.sim.requests if r.how in ("clean_end", "cut_json", "empty_body")]


@pytest.mark.parametrize("seed", SEEDS)
def test_sound_cluster_under_random_faults(seed: int) -> None:
    scenario = Scenario(sound(), seed)
    scenario.run()
    sim, story = scenario.sim, scenario.faults

    hows: defaultdict[str | None, int] = defaultdict(int)
    for request in sim.requests:
        hows[request.how] += 1
    assert hows["finish"] > 40, (dict(hows), story)
    assert scenario.silent_ends() == [], story
    assert scenario.overdue() == [], story

    for session, reign in scenario.observer.reigns.items():
        assert reign.doubled == [], (session, story)
        gaps = [b - a for a, b in zip(reign.placed_at, reign.placed_at[1:], strict=False)]
        assert all(g > scenario.timers.keeper_step_s - 2 * POLL_S for g in gaps), (session, gaps, story)
        early = [t - reign.seen_at for t in reign.placed_at if t - reign.seen_at < 15.0 - 2 * POLL_S]
        assert early == [], (session, story)

    after = [sim.chat(n, ChatRequest(m, streamed=True, max_tokens=2)) for n in sim.names for m in MODELS]
    sim.run_until(sim.now + 10.0)
    assert {r.how for r in after} == {"finish"}, ([(r.node, r.model, r.how) for r in after], story)
    nodes = [logic for n in sim.names if (logic := sim.logic(n)) is not None]
    assert len(nodes) == len(sim.names)
    views = [(set(n.state.instances), set(n.state.deployments), set(n.state.nodes), n.session) for n in nodes]
    assert all(v == views[0] for v in views), story
    assert views[0][2] == {n.node_id for n in nodes}, story
    assert [n.node_id for n in nodes if n.is_master] == [views[0][3].master], story
    assert {d.model_id for d in nodes[0].state.deployments.values()} == set(MODELS), story


def test_flawed_cluster_loses_requests_in_each_way() -> None:
    ways: defaultdict[str, int] = defaultdict(int)
    for seed in range(4):
        scenario = Scenario(exo_0_3_70(), seed)
        scenario.run()
        for request in scenario.silent_ends():
            ways[str(request.how)] += 1
        ways["hung"] += len(scenario.overdue())
    assert all(ways[how] > 0 for how in ("clean_end", "cut_json", "empty_body", "hung")), dict(ways)
