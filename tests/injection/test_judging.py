"""The controller's own account, and what the ends of several scripts mean together, from literals."""

from __future__ import annotations

from typing import Literal

import pytest

from rig.faults.plan.registry import KINDS
from rig.injection.act import End, Progress, end_of
from rig.injection.aim import Act
from rig.injection.outcome import detail, evidence, outcome
from rig.injection.verify import judge_processes
from rig.nodes.inspect import Inspection, Process
from rig.nodes.scripts import ScriptEvent


def progress(
    *events: tuple[str, float, dict[str, str]], end: End | None = None, node: str = "n1", kind: str = "freeze"
) -> Progress:
    found = Progress(Act(node=node, kind=KINDS[kind], values={}), [ScriptEvent(*event) for event in events])
    found.end = end
    return found


def seen(clock: float, **states: str) -> Inspection:
    """`p11="T"`: pid 11 with start `s` in that state."""
    tree = [Process(int(name[1:]), 1, "s", state, "exo") for name, state in states.items()]
    return Inspection(node="n1", clock=clock, tree=tree)


STRUCK = ("struck", 100.0, {"pids": "11:s 12:s", "main": "11:s"})


@pytest.mark.parametrize(
    ("inspection", "says"),
    [
        (seen(101.0, p11="T", p12="T"), "agrees"),
        (seen(101.0, p11="T", p12="Z"), "agrees"),
        (seen(101.0, p11="T", p12="S"), "disagrees"),
        (seen(101.0), "disagrees"),  # dead is not stopped
        (seen(104.99, p11="S", p12="S"), "silent"),  # the hold of 5 s is over
    ],
)
def test_freeze(inspection: Inspection, says: Literal["agrees", "disagrees", "silent"]) -> None:
    assert judge_processes(progress(STRUCK, kind="freeze"), inspection, 5.0).says == says


def test_freeze_that_healed_before_the_look() -> None:
    early = progress(STRUCK, ("healing", 100.5, {}))
    assert judge_processes(early, seen(100.6, p11="S", p12="S"), 5.0).says == "silent"


@pytest.mark.parametrize(
    ("inspection", "says"),
    [
        (seen(100.1), "agrees"),
        (seen(100.1, p11="Z"), "agrees"),
        (seen(100.1, p12="S"), "disagrees"),
    ],
)
def test_crash(inspection: Inspection, says: str) -> None:
    assert judge_processes(progress(STRUCK, kind="node-crash"), inspection, 5.0).says == says


def test_a_pid_that_was_given_to_another_is_gone() -> None:
    other = Inspection(node="n1", clock=1.0, tree=[Process(11, 1, "later", "S", "vi")])
    assert judge_processes(progress(STRUCK, kind="node-crash"), other, 5.0).says == "agrees"


def test_runner_kill_spares_the_main_process() -> None:
    one = progress(("struck", 1.0, {"pids": "12:s", "main": "11:s"}), kind="runner-kill")
    assert judge_processes(one, seen(1.1, p11="S"), 0.0).says == "agrees"
    assert judge_processes(one, seen(1.1), 0.0).says == "disagrees"
    assert judge_processes(one, seen(1.1, p11="S", p12="R"), 0.0).says == "disagrees"


@pytest.mark.parametrize(
    ("names", "end"),
    [
        (["leased", "struck", "holding", "healing", "healed", "dropped"], "healed"),
        (["skipped"], "skipped"),
        (["leased", "ineffective", "healing", "healed", "dropped"], "ineffective"),
        (["leased", "struck", "holding", "ineffective", "healing", "unhealed"], "unhealed"),
        (["leased", "struck"], "invalid"),
        ([], "invalid"),
    ],
)
def test_the_end_as_a_log_tells_it(names: list[str], end: End) -> None:
    assert end_of([ScriptEvent(name, 1.0) for name in names]) == end


def test_healed_by_another_hand_is_invalid() -> None:
    assert end_of([ScriptEvent("struck", 1.0), ScriptEvent("healed", 2.0, {"by": "heal"})]) == "invalid"


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        (["healed", "healed"], "healed"),
        (["healed", "ineffective"], "ineffective"),
        (["skipped", "ineffective"], "skipped"),
        (["invalid", "skipped"], "invalid"),
        (["healed", "unhealed"], "unhealed"),
    ],
)
def test_several_scripts(ends: list[End], state: str) -> None:
    assert outcome([progress(end=end) for end in ends]) == state


def test_half_a_cut_is_invalid() -> None:
    assert outcome([progress(STRUCK, end="healed"), progress(end="skipped")]) == "invalid"


def test_reasons_name_the_node_where_there_are_several() -> None:
    bad = progress(end="skipped", node="b")
    bad.detail = "no nft"
    assert detail([bad]) == "no nft"
    assert detail([progress(end="healed", node="a"), bad]) == "b: no nft"


def test_evidence_keeps_what_the_scripts_said() -> None:
    found = evidence("f1", [progress(STRUCK, end="healed")], [], None)
    assert found == {"id": "f1", "n1": {"struck": {"node_t": 100.0, "pids": "11:s 12:s", "main": "11:s"}}}
