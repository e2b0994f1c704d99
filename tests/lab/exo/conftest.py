"""A cluster under virtual time that has settled: three nodes, one master, links complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rig.lab.exo.behaviour import Behaviour, timers_for
from rig.lab.exo.simulation import Simulation

SETTLED_S = 30.0

MakeCluster = Callable[..., Simulation]


@pytest.fixture
def make_cluster() -> MakeCluster:
    """`make_cluster(behaviour, models={"lab/tiny-a": 1}, token_s=0.05, seed=0)`: deployed after 8 s, run to 45 s."""

    def make(
        behaviour: Behaviour, *, models: dict[str, int] | None = None, token_s: float = 0.05, seed: int = 0
    ) -> Simulation:
        timers = replace(timers_for(behaviour), token_s=token_s)
        sim = Simulation(["n1", "n2", "n3"], behaviour=behaviour, timers=timers, seed=seed)
        sim.run_until(SETTLED_S)
        for model_id, min_nodes in (models or {}).items():
            sim.ask("n1", lambda n, t, m=model_id, k=min_nodes: n.create_deployment(t, m, min_nodes=k))
        sim.run_until(SETTLED_S + 15.0)
        return sim

    return make
