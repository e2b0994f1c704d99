"""`kill -9` of the controller in mid-fault: the nodes heal by themselves, the run can be reported, the next one begins.

That a new soak begins after it is part of each case (`Killed`), on the same cluster.
"""

from __future__ import annotations

import pytest

from tests.soak.endings import BRIEF_S, Ending, Killed, label

ALONE_S = 2.0  # by when a node has healed after its hold, without anybody's help
WAIT = [Killed("freeze", "wait"), Killed("partition", "wait")]
HEAL = [Killed("freeze", "heal"), Killed("partition", "heal")]


@pytest.mark.parametrize("act", WAIT, ids=label)
def test_the_nodes_heal_by_themselves(ending: Ending) -> None:
    assert ending.code == -9
    for since, to in ending.over():
        assert BRIEF_S - 0.1 - ending.resolution_s < to - since < BRIEF_S + ALONE_S + ending.resolution_s
        assert to > ending.acted + 0.5, "healed before the controller was gone"
    assert ending.left == []


@pytest.mark.parametrize("act", [*WAIT, *HEAL], ids=label)
def test_the_run_is_reported_as_far_as_it_went(ending: Ending) -> None:
    code, _, told = (ending.run.parents[1] / "reported.txt").read_text().partition("\n")
    assert code == "3"
    assert "THIS RUN DID NOT FINISH" in told
    assert "run: unknown (exit code 3)" in told
    assert "Traceback" not in told
    assert ending.summary["run"]["finished"] is False
    assert ending.summary["requests"]["started"] > 0


@pytest.mark.parametrize("act", HEAL, ids=label)
def test_a_new_soak_is_refused_over_the_lease_and_told_what_clears_it(ending: Ending) -> None:
    """The command that it names is then run, word for word (see `Killed`)."""
    work = ending.run.parents[1]
    code, _, refused = (work / "refused.txt").read_text().partition("\n")
    assert code == "3"
    assert "still in force" in refused
    assert ", run run (" in refused
    assert "fix: rig heal --inventory" in refused
    assert not list((work / "refused").iterdir())
    code, _, healed = (work / "healed.txt").read_text().partition("\n")
    assert code == "0"
    assert ": healed " in healed
    assert ending.healed_within_s() < 0.1 + ending.resolution_s, "not yet healed when the command said so"
    assert ending.left == []
