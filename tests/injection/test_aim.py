"""Which node and which runner a fault means, from literals."""

from __future__ import annotations

import pytest

from rig.faults.plan.registry import KINDS
from rig.injection.aim import CannotAim, InstanceView, choose_master, choose_runner
from rig.injection.schedule import Planned
from rig.nodes.inspect import Inspection, Process


def node(name: str, *, claim: bool | None, files: bool, log: str = "", alive: bool = True) -> Inspection:
    main = Process(1, 0, "s", "S", "exo") if alive else None
    return Inspection(node=name, clock=1.0, main=main, master_claim=claim, master_files=files, master_log=log)


def planned(index: int = 0, nodes: tuple[str, ...] = ("a", "b", "c")) -> Planned:
    return Planned(index=index, kind=KINDS["runner-kill"], aim="", hold_s=0.0, gap_s=0.0, nodes=nodes, model="m")


def test_one_claim() -> None:
    seen = [node("a", claim=False, files=False), node("b", claim=True, files=True), node("c", claim=None, files=False)]
    assert choose_master(seen) == ("b", ())


def test_files_decide_between_claims_and_it_is_said() -> None:
    seen = [node("a", claim=True, files=False, log="2"), node("b", claim=True, files=True, log="1")]
    assert choose_master(seen) == ("b", ("a, b claim to be master; aimed at b",))


def test_files_weigh_more_than_a_log_line() -> None:
    chosen, odd = choose_master([node("a", claim=True, files=False), node("b", claim=False, files=True)])
    assert chosen == "b"
    assert "a claims to be master in its log, but b has" in odd[0]


def test_two_masters_the_later_log_line_wins() -> None:
    seen = [node("a", claim=True, files=True, log="01:00:02"), node("b", claim=True, files=True, log="01:00:01")]
    chosen, odd = choose_master(seen)
    assert chosen == "a"
    assert len(odd) == 2


def test_a_log_alone_is_enough_and_the_dead_do_not_count() -> None:
    assert choose_master([node("a", claim=True, files=False)])[0] == "a"
    assert choose_master([node("a", claim=True, files=True, alive=False), node("b", claim=True, files=False)])[0] == "b"


def test_no_master() -> None:
    with pytest.raises(CannotAim, match="no node claims"):
        choose_master([node("a", claim=False, files=False), node("b", claim=True, files=True, alive=False)])


def test_runner_and_the_others_on_its_node() -> None:
    mine = InstanceView("i1", "m", {"a": "r1", "b": "r2"}, 50001)
    beside = InstanceView("i2", "other", {"b": "r3"}, 50002)
    away = InstanceView("i3", "other", {"c": "r4"}, 50003)
    assert choose_runner(planned(0), [mine, beside, away]) == (mine, "a", ())
    assert choose_runner(planned(1), [mine, beside, away]) == (mine, "b", (beside,))
    assert choose_runner(planned(2), [mine, beside, away]) == (mine, "a", ())
    assert choose_runner(planned(2, nodes=("b",)), [mine, beside]) == (mine, "b", (beside,))


def test_no_runner_to_kill() -> None:
    with pytest.raises(CannotAim, match="no instance of m"):
        choose_runner(planned(), [InstanceView("i2", "other", {"b": "r3"}, 1)])
    with pytest.raises(CannotAim, match="no runner on a node that may be hit"):
        choose_runner(planned(nodes=("c",)), [InstanceView("i1", "m", {"a": "r1"}, 1)])
