"""A soak with an embedded cluster of its own: whatever dies first, and whenever, nothing of it stays."""

from __future__ import annotations

import signal

import pytest

from tests.soak.endings import BRIEF_S, Ending, label
from tests.soak.owned import Owned

LINGERS_S = 10.0  # for the cluster to see that nobody holds a lease, and to end everything


@pytest.mark.parametrize("act", [Owned(signal.SIGKILL, "hold")], ids=label)
def test_kill_9_of_the_soak(ending: Ending) -> None:
    """The cluster outlives its owner until its node has healed by itself, and no longer."""
    assert ending.code == -9
    [(since, to)] = ending.over()
    assert BRIEF_S - 0.1 - ending.resolution_s < to - since < BRIEF_S + 2.0 + ending.resolution_s
    assert to > ending.acted + 0.5
    assert ending.ended < to + LINGERS_S
    assert ending.left == []


@pytest.mark.parametrize("act", [Owned(signal.SIGINT, "start")], ids=label)
def test_ctrl_c_while_the_cluster_starts(ending: Ending) -> None:
    assert ending.code == 130, ending.err
    assert not ending.run.exists()
    assert ending.left == []
    assert "Traceback" not in ending.err


@pytest.mark.parametrize("act", [Owned(signal.SIGINT, "setup")], ids=label)
def test_ctrl_c_while_the_models_load(ending: Ending) -> None:
    assert ending.code == 130, ending.err
    assert ending.summary["run"]["reason"] == "interrupted"
    assert ending.left == []
    assert "Traceback" not in ending.err
    assert ending.ended - ending.acted < 30


@pytest.mark.parametrize("act", [Owned(signal.SIGKILL, "hold", "cluster")], ids=label)
def test_a_cluster_that_dies_ends_the_run(ending: Ending) -> None:
    assert ending.code in (1, 3), ending.err  # its last fault could not be proved healed
    assert "the embedded cluster ended by itself" in ending.err
    assert "THIS RUN DID NOT FINISH: it failed after" in ending.out
    assert ending.left == []
    assert "Traceback" not in ending.err
