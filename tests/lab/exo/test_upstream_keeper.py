"""Exo's own keeper after 0.3.70, as it decides: literals of what it says at which second, and of what it forgets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from rig.lab.exo.behaviour import Behaviour, sound, timers_for, upstream
from rig.lab.exo.context import Context
from rig.lab.exo.events import (
    Deployment,
    DeploymentCreated,
    DeploymentDeleted,
    DeploymentPlaced,
    DeploymentPlacementFailed,
    Event,
    Instance,
    InstanceCreated,
    InstanceDeleted,
    NodeGatheredInfo,
    NodeInfo,
    NodeTimedOut,
    RunnerStatus,
    RunnerStatusUpdated,
    TopologyEdgeCreated,
)
from rig.lab.exo.keeper import Place, PromisedKeeper, Refuse
from rig.lab.exo.models import Model
from rig.lab.exo.simulation import Simulation
from rig.lab.exo.state import ClusterState
from rig.lab.exo.upstream import UpstreamKeeper

MakeCluster = Callable[..., Simulation]
GB = 1024**3
MODELS = {
    m.model_id: m for m in (Model("a", GB), Model("b", GB), Model("big", 99 * GB), Model("bad", GB, crashes=True))
}
NO_MEMORY = "No cycles found with sufficient memory"


@dataclass
class World:
    """A keeper that began at 0 and a state that it looks at; what it says reaches the state when `apply` says so."""

    kind: type[UpstreamKeeper] | type[PromisedKeeper] = UpstreamKeeper
    state: ClusterState = field(default_factory=lambda: ClusterState(names_gone=True))

    def __post_init__(self) -> None:
        behaviour = upstream() if self.kind is UpstreamKeeper else sound()
        self.ctx = Context(
            "n", "10.0.0.1", behaviour, timers_for(behaviour), random.Random(1), MODELS, 8 * GB, restarted=False
        )
        self.keeper = self.kind(self.ctx, 0.0)
        self.node("n1")

    def apply(self, *events: Event) -> None:
        for event in events:
            self.state.apply(event, 0.0)

    def node(self, name: str, memory: int = 8 * GB, backends: tuple[str, ...] = ("MlxCpu",)) -> None:
        self.apply(NodeGatheredInfo(name, NodeInfo(name, "10.0.0.1", memory, memory, backends)))

    def link(self, a: str, b: str) -> None:
        self.apply(TopologyEdgeCreated(a, b, "x"), TopologyEdgeCreated(b, a, "x"))

    def deploy(self, *names: str, min_nodes: int = 1) -> None:
        """Deployment and model have the same name, but for what follows a dash."""
        self.apply(*(DeploymentCreated(_deployment(name, min_nodes)) for name in names))

    def step(self, now: float) -> list[tuple[str, str]]:
        """What it decides, by deployment: the reason or, of a placement, nothing."""
        said: list[tuple[str, str]] = []
        for decision in self.keeper.step(now, self.state):
            match decision:
                case Place(deployment, placed, instance_id):
                    said.append((deployment.deployment_id, ""))
                    self.last = _instance(instance_id, deployment.model_id, placed.nodes)
                case Refuse(name, reason):
                    said.append((name, reason))
                case _:
                    raise AssertionError(decision)
        return said

    def arrive(self, name: str) -> Instance:
        """The last placement reaches the state."""
        self.apply(InstanceCreated(self.last), DeploymentPlaced(name, self.last.instance_id))
        self.keeper.arrived(self.state.deployments[name])
        return self.last

    def get_ready(self, instance: Instance) -> None:
        self.apply(*(RunnerStatusUpdated(r, RunnerStatus("RunnerReady")) for r in instance.runners))
        self.keeper.ready(instance, self.state)

    def lose(self, instance: Instance, now: float) -> None:
        self.keeper.lost(now, instance, self.state)
        self.apply(InstanceDeleted(instance.instance_id))


def _deployment(name: str, min_nodes: int = 1) -> Deployment:
    return Deployment(name, name.partition("-")[0], "Pipeline", "MlxRing", min_nodes)


def _instance(name: str, model: str, nodes: tuple[str, ...]) -> Instance:
    runners = tuple(f"{name}-{node}" for node in nodes)
    return Instance(name, model, "Pipeline", "MlxRing", nodes, runners, ("x",) * len(nodes), 50000)


def test_a_step_ends_at_the_first_that_it_has_anything_to_say_about_a_refusal_included() -> None:
    world = World()
    world.deploy("a", "big", "bad", "b")
    assert [world.step(t) for t in (14.0, 15.0)] == [[], [("a", "")]]
    assert world.step(15.5) == []  # once a second
    world.arrive("a")
    assert world.step(16.0) == [("b", "")]
    world.arrive("b")
    assert world.step(17.0) == [("bad", "TypeError: unsupported model card")]
    world.apply(DeploymentPlacementFailed("bad", "TypeError: unsupported model card"))
    assert world.step(18.0) == [("big", NO_MEMORY)]
    world.apply(DeploymentPlacementFailed("big", NO_MEMORY))
    assert [world.step(float(t)) for t in range(19, 100)] == [[]] * 81  # tried again, with the same answers


def test_the_promised_one_says_all_refusals_and_one_placement_in_a_step() -> None:
    world = World(PromisedKeeper, ClusterState())
    world.deploy("big", "bad", "a", "b")
    assert world.step(15.0) == [("a", "")]
    assert world.step(16.0) == [("b", "")]
    assert world.step(17.0) == [("bad", "TypeError: unsupported model card"), ("big", NO_MEMORY)]


@pytest.mark.parametrize(("lost_t", "again"), [(20.9, 31), (21.1, 22)])
def test_ready_is_what_a_step_saw(lost_t: float, again: int) -> None:
    """Ready from 20.5 on. Lost before the step at 21, it counts as lost before it was ready."""
    world = World()
    world.deploy("a")
    world.step(20.0)
    instance = world.arrive("a")
    world.get_ready(instance)
    if lost_t > 21.0:
        assert world.step(21.0) == []
    world.lose(instance, lost_t)
    assert [t for t in range(21, 40) if world.step(float(t))] == [again]


def test_the_promised_one_hears_of_it() -> None:
    world = World(PromisedKeeper, ClusterState())
    world.deploy("a")
    world.step(20.0)
    instance = world.arrive("a")
    world.get_ready(instance)
    world.lose(instance, 20.9)
    assert world.step(21.0) == [("a", "")]


@pytest.mark.parametrize("kind", [UpstreamKeeper, PromisedKeeper])
def test_a_new_master_knows_nothing_of_what_the_one_before_has_placed(
    kind: type[UpstreamKeeper] | type[PromisedKeeper],
) -> None:
    world = World(kind, ClusterState(names_gone=kind is UpstreamKeeper))
    world.deploy("a")
    theirs = _instance("i", "a", ("n1",))
    world.apply(InstanceCreated(theirs), DeploymentPlaced("a", "i"))
    assert world.step(20.0) == []
    world.lose(theirs, 20.5)
    assert world.step(21.0) == [("a", "")]


@pytest.mark.parametrize(("kind", "again"), [(UpstreamKeeper, 50.0), (PromisedKeeper, 30.0)])
def test_the_time_of_a_retry_outlives_the_placement_after_it(
    kind: type[UpstreamKeeper] | type[PromisedKeeper], again: float
) -> None:
    """Refused at 20, placed at 25 as a node came, ready at 28, lost at 29: placed again at 50, not at 30."""
    world = World(kind, ClusterState(names_gone=kind is UpstreamKeeper))
    world.deploy("a", min_nodes=2)
    assert world.step(20.0) == [("a", NO_MEMORY)]
    world.apply(DeploymentPlacementFailed("a", NO_MEMORY))
    world.node("n2")
    world.link("n1", "n2")
    assert world.step(25.0) == [("a", "")]
    instance = world.arrive("a")
    world.get_ready(instance)
    assert world.step(28.0) == []
    world.lose(instance, 29.5)
    assert next(float(t) for t in range(30, 60) if world.step(float(t))) == again


def test_the_backoff_overflows_after_1025_losses_before_ready_and_every_later_step_fails() -> None:
    world = World()
    world.deploy("a")
    now, losses = 20.0, 0
    while world.step(now) and losses < 1100:
        instance = world.arrive("a")
        world.lose(instance, now)
        losses += 1
        assert world.step(now + 1.0) == []  # sees it
        now += 61.0
    assert losses == 1025
    world.deploy("b")
    assert [world.step(now + t) for t in range(1, 200)] == [[]] * 199


def test_a_deployment_that_is_being_deleted_is_left_alone_and_takes_what_is_on_its_way() -> None:
    world = World()
    world.deploy("a")
    world.step(20.0)
    assert world.keeper.deleting(world.state.deployments["a"]) == world.last.instance_id
    assert world.step(51.0) == []
    world.apply(DeploymentDeleted("a"))
    assert world.step(52.0) == []
    world.deploy("a")
    assert world.step(53.0) == [("a", "")]
    world.arrive("a")
    assert world.keeper.deleting(world.state.deployments["a"]) is None


def test_a_placement_on_its_way_is_waited_for_30_s() -> None:
    world = World()
    world.deploy("a")
    assert [t for t in range(15, 80) if world.step(float(t))] == [15, 45, 75]


def test_the_same_reason_is_said_twice_where_the_first_is_still_on_its_way() -> None:
    world = World()
    world.deploy("big")
    assert world.step(20.0) == [("big", NO_MEMORY)]
    world.node("n2")
    assert world.step(21.0) == [("big", NO_MEMORY)]


def test_a_node_joins_in_pieces_and_each_that_matters_is_a_change() -> None:
    world = World()
    world.deploy("a", min_nodes=2)
    refused = [("a", NO_MEMORY)]
    assert world.step(20.0) == refused
    world.apply(TopologyEdgeCreated("n1", "n2", "x"))
    assert world.step(21.0) == []  # a link to a node that is not there is no change
    world.node("n2", memory=0, backends=())
    assert world.step(22.0) == []
    world.node("n2", backends=())
    assert world.step(23.0) == []
    world.node("n2")
    assert world.step(24.0) == refused
    world.link("n1", "n2")
    assert world.step(25.0) == [("a", "")]


def test_a_piece_takes_nothing_back() -> None:
    world = World()
    world.node("n1", memory=0, backends=())
    info = world.state.nodes["n1"]
    assert (info.ram_total, info.backends) == (8 * GB, ("MlxCpu",))


# The master with it: its events come back late.


def _master(sim: Simulation) -> ClusterState:
    return next(n for name in sim.names if (n := sim.logic(name)) is not None and n.is_master).state


def _deployed_with_lag(lag_s: float, behaviour: Behaviour | None = None, min_nodes: int = 1) -> Simulation:
    """To the moment in which the placement is on its way."""
    made = behaviour or upstream()
    timers = replace(timers_for(made), placement_flight_s=lag_s)
    sim = Simulation(["n1", "n2", "n3"], behaviour=made, timers=timers, seed=0)
    sim.run_until(30.0)
    sim.ask("n1", lambda n, t: n.create_deployment(t, "lab/tiny-a", min_nodes=min_nodes))
    sim.run_until(30.0 + lag_s)
    while not any(logic.placements_in_flight for name in sim.names if (logic := sim.logic(name)) is not None):
        sim.run_until(sim.now + 0.05)
    return sim


def test_a_hand_placement_that_meets_the_keepers_makes_two_instances() -> None:
    sim = _deployed_with_lag(3.0)
    sim.ask("n2", lambda n, t: n.place_instance(t, "lab/tiny-a"))
    sim.run_until(sim.now + 5.0)
    assert sorted(i.by_hand for i in _master(sim).instances.values()) == [False, True]


def test_a_deployment_goes_on_naming_an_instance_that_is_gone() -> None:
    sim = _deployed_with_lag(0.2)
    sim.run_until(sim.now + 2.0)
    (instance,) = _master(sim).instances
    sim.ask("n2", lambda n, t: n.delete_instance(t, instance))
    sim.run_until(sim.now + 2.0)
    state = _master(sim)
    assert (list(state.instances), [d.instance_id for d in state.deployments.values()]) == ([], [instance])


@pytest.mark.parametrize(("behaviour", "made"), [(upstream(), True), (sound(), False)])
def test_what_is_placed_on_a_node_that_goes_meanwhile_is_made_and_then_removed(
    behaviour: Behaviour, *, made: bool
) -> None:
    sim = _deployed_with_lag(10.0, behaviour, min_nodes=3)
    name = next(name for name in sim.names if (n := sim.logic(name)) is not None and n.is_master)
    master = sim.logic(name)
    assert master is not None
    victim = next(other for other in sim.names if other != name)
    logic = sim.logic(victim)
    assert logic is not None
    first = master.replica.next_index
    sim.crash(victim)
    gone = NodeTimedOut(logic.node_id)
    sim.ask(name, lambda n, t: (n.replica.local(gone), n.tick(t)))
    sim.run_until(sim.now + 31.0)
    log = [entry.event for entry in master.replica.log.read(first, 10_000)]
    created = [e.instance.instance_id for e in log if isinstance(e, InstanceCreated)]
    assert bool(created) is made
    assert {e.instance_id for e in log if isinstance(e, InstanceDeleted)} == set(created)
