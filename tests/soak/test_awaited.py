"""What a model that does not serve yet is waiting for."""

from __future__ import annotations

from typing import Any

import pytest

from rig.journal.records import Facet, Reachability, ViewChanged
from rig.observe.cluster_view import ClusterView
from rig.run.awaited import awaited

RING = {"i1234567-89": {"model": "m", "runners": {"id-a": "r1", "id-b": "r2"}, "port": 1}}
STARTING = {"d": {"model": "m", "status": "starting", "instance": "i1234567-89", "error": None, "min_nodes": 2}}
REFUSED = {"d": {"model": "m", "status": "cant_place", "instance": None, "error": "no memory", "min_nodes": 2}}


def view(**facets: Any) -> ClusterView:
    found = ClusterView(["a", "b"])
    found.apply(ViewChanged(t=1, node="b", facet="node_id", since_t=None, value="id-b"))
    found.apply(ViewChanged(t=1, node="a", facet="node_id", since_t=None, value="id-a"))
    found.apply(Reachability(t=1, node="a", since_t=None, reachable=True))
    names: dict[str, Facet] = {"instances": "instances", "runners": "runners", "loading": "loading"}
    names["deployments"] = "deployments"
    for name, value in facets.items():
        found.apply(ViewChanged(t=1, node="a", facet=names[name], since_t=None, value=value))
    return found


@pytest.mark.parametrize(
    ("facets", "said"),
    [
        ({}, "m: a tells of no deployments; no instance"),
        ({"deployments": {}}, "m: no deployment listed by a; no instance"),
        ({"deployments": REFUSED}, "m: deployment cant_place (no memory); no instance"),
        (
            {
                "deployments": STARTING,
                "instances": RING,
                "runners": {"r1": "RunnerLoading"},
                "loading": {"r1": "3 of 12 layers"},
            },
            "m: deployment starting; instance i1234567 on a RunnerLoading 3 of 12 layers, b no runner yet",
        ),
    ],
)
def test_it_is_said_of_each_deployment_and_runner(facets: dict[str, Any], said: str) -> None:
    assert awaited(view(**facets), ["m"]) == [said]


def test_where_nothing_answers() -> None:
    assert awaited(ClusterView(["a"]), ["m", "n"]) == [
        "m: no node's API answers; no instance",
        "n: no node's API answers; no instance",
    ]
