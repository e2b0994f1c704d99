"""Ctrl-C, SIGTERM and a closed terminal: healed at once by the sampler's account, what ran reported, nothing left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.soak.endings import Act, Ending, HungUp, Signalled, label

HEALED_S = 2.0
MID_FAULT: list[tuple[Act, str, int]] = [
    *((Signalled(kind, (signal.SIGINT,)), kind, 130) for kind in ("freeze", "partition", "node-crash")),
    *((Signalled(kind, (signal.SIGTERM,)), kind, 143) for kind in ("freeze", "partition", "master-crash")),
    (Signalled("freeze", (signal.SIGINT, signal.SIGINT, signal.SIGTERM)), "freeze", 130),
    (Signalled("freeze", (signal.SIGHUP, signal.SIGINT), ignored="HUP"), "freeze", 130),
    (HungUp("partition"), "partition", 143),
]


def start_of_exo_s() -> float:
    """How long a process such as exo's takes to come up here and now: the target's time, not the rig's."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import rig.lab.embedded.process.host"], check=True, timeout=60)
    return time.monotonic() - begun


@pytest.mark.parametrize(("act", "kind", "code"), MID_FAULT, ids=label)
def test_in_mid_fault(ending: Ending, kind: str, code: int) -> None:
    assert ending.code == code, ending.err
    allowed_s = HEALED_S + ending.resolution_s + (start_of_exo_s() if kind.endswith("crash") else 0.0)
    assert ending.healed_within_s() < allowed_s
    assert ending.left == []
    assert ending.held == []
    assert "Traceback" not in ending.err + ending.out
    summary = ending.summary
    assert summary["run"]["reason"] == ("interrupted" if code == 130 else "terminated")
    assert [(fault["kind"], fault["state"], fault["effective"]) for fault in summary["faults"]] == [
        (kind, "healed", True)
    ]
    assert (ending.run / "summary.md").read_text().count(kind) > 0


@pytest.mark.parametrize("act", [act for act, _, _ in MID_FAULT if isinstance(act, Signalled)], ids=label)
def test_the_tables_of_what_ran_are_printed(ending: Ending) -> None:
    assert "DID NOT FINISH" in ending.out
    for title in ("Requests", "Faults", "Recovery", "Checks"):
        assert f"\n{title} " in ending.out


@pytest.mark.parametrize(
    "act",
    [Signalled("freeze", (signal.SIGINT,), "baseline"), Signalled("runner-kill", (signal.SIGINT,), "drain")],
    ids=label,
)
def test_between_faults(ending: Ending) -> None:
    assert ending.code == 130, ending.err
    assert ending.left == []
    assert ending.held == []
    assert ending.summary["run"]["reason"] == "interrupted"
    assert "Traceback" not in ending.err
    assert ending.ended - ending.acted < 15, "waited for requests that take longer"
