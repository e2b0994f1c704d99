"""Which node and which runner a fault means, from literals."""

from __future__ import annotations

import pytest

from rig.faults.plan.registry import KINDS
from rig.injection.aim import CannotAim, choose_master, choose_worker
from rig.injection.schedule import Planned
from rig.nodes.inspect import Inspection, Process
from rig.nodes.master import Ruling
from rig.targets.views import Instance


def node(
    name: str,
    *,
    claim: bool | None,
    files: bool,
    for_s: float | None = None,
    elected: str = "",
    alive: bool = True,
) -> Inspection:
    return Inspection(
        node=name,
        clock=1.0,
        main=Process(1, 0, "s", "S", "exo") if alive else None,
        master_claim=claim,
        master_files=files,
        master_claimed_s=for_s,
        elected_id=elected,
        node_id=f"id-{name}",
    )


def planned(index: int = 0, nodes: tuple[str, ...] = ("a", "b", "c")) -> Planned:
    return Planned(index=index, kind=KINDS["runner-kill"], aim="", hold_s=0.0, gap_s=0.0, nodes=nodes, model="m")


def test_one_claim() -> None:
    seen = [node("a", claim=False, files=False), node("b", claim=True, files=True), node("c", claim=None, files=False)]
    assert choose_master(seen) == Ruling("b")


def test_a_node_that_has_just_started_claims_and_has_the_files_but_is_not_it() -> None:
    seen = [
        node("a", claim=True, files=True, for_s=600.0),
        node("b", claim=True, files=True, for_s=1.0),
        node("c", claim=False, files=False, elected="id-a"),
    ]
    assert choose_master(seen).master == "a"
    assert choose_master(seen[:2]).master == "a"
    assert "a (for 600 s), b (for 1 s) claim to be master" in choose_master(seen).reason


def test_a_lone_young_claim_is_nothing_while_a_node_cannot_be_asked() -> None:
    seen = [node("b", claim=True, files=True, for_s=1.0)]
    assert choose_master(seen, ["a", "c"]).master is None
    assert choose_master(seen).master == "b"


def test_the_files_rule_out_a_claim_and_it_is_said() -> None:
    seen = [node("a", claim=True, files=False), node("b", claim=True, files=True)]
    assert choose_master(seen) == Ruling("b", "a claim it too, by log or by open files")


def test_without_a_log_the_files_are_the_claim() -> None:
    seen = [node("a", claim=None, files=True), node("b", claim=None, files=False)]
    assert choose_master(seen) == Ruling("a")


def test_the_dead_do_not_count() -> None:
    assert choose_master([node("a", claim=True, files=False)]).master == "a"
    dead = node("a", claim=True, files=True, alive=False)
    assert choose_master([dead, node("b", claim=True, files=False)]).master == "b"
    assert choose_master([dead, node("b", claim=False, files=False)]) == Ruling(None, "no node claims to be master")


def test_runner_and_the_others_on_its_node() -> None:
    mine = Instance("i1", "m", {"a": "r1", "b": "r2"}, 50001)
    beside = Instance("i2", "other", {"b": "r3"}, 50002)
    away = Instance("i3", "other", {"c": "r4"}, 50003)
    assert choose_worker(planned(0), [mine, beside, away]) == (mine, "a", ())
    assert choose_worker(planned(1), [mine, beside, away]) == (mine, "b", (beside,))
    assert choose_worker(planned(2), [mine, beside, away]) == (mine, "a", ())
    assert choose_worker(planned(2, nodes=("b",)), [mine, beside]) == (mine, "b", (beside,))


def test_no_runner_to_kill() -> None:
    with pytest.raises(CannotAim, match="no instance of m"):
        choose_worker(planned(), [Instance("i2", "other", {"b": "r3"}, 1)])
    with pytest.raises(CannotAim, match="no runner on a node that may be hit"):
        choose_worker(planned(nodes=("c",)), [Instance("i1", "m", {"a": "r1"}, 1)])
