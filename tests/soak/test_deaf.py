"""Output that nobody reads or that cannot be written: the run goes on, heals, and its exit code still is the truth."""

from __future__ import annotations

import os
import sys

import pytest

from tests.soak.endings import BRIEF_S, Act, Deaf, DiskFull, Ending, Redirected, Unwritable, label

DEAF: list[Act] = [Deaf("freeze", "both"), Redirected("runner-kill", ">&- 2>&-")]
# The size of another process's files can be limited on Linux; a small file system takes root.
UNWRITABLE: list[Act] = [Unwritable("freeze")] if sys.platform == "linux" else []
if sys.platform == "linux" and os.geteuid() == 0:
    UNWRITABLE.append(DiskFull("partition"))


@pytest.mark.parametrize("act", DEAF, ids=label)
def test_a_run_nobody_listens_to(ending: Ending) -> None:
    assert ending.code == ending.summary["exit_code"]
    assert ending.summary["run"]["finished"]
    assert ending.summary["findings"] == []
    assert ending.left == []
    assert ending.held == []


@pytest.mark.parametrize("act", [Deaf("freeze", "both")], ids=label)
def test_a_hold_is_not_cut_short_by_it(ending: Ending) -> None:
    since, to = ending.over()[0]
    assert to - since > BRIEF_S - 0.1 - ending.resolution_s


@pytest.mark.parametrize("act", [Redirected("runner-kill", ">/dev/full")], ids=label)
def test_standard_output_on_a_full_disk(ending: Ending) -> None:
    assert ending.code == (ending.summary["exit_code"] or 3)
    assert "rig: not everything could be written to standard output: No space left on device" in ending.err
    assert "Traceback" not in ending.err


@pytest.mark.parametrize("act", UNWRITABLE, ids=label)
def test_a_journal_that_cannot_be_written_any_more(ending: Ending) -> None:
    assert ending.code == 3, ending.err
    assert ending.healed_within_s() < 5.0 + ending.resolution_s
    assert ending.left == []
    assert ending.held == []
    reason = "No space left on device" if "disk" in str(ending.run) else "File too large"
    assert f"cannot write: {reason}" in ending.err
    assert "Traceback" not in ending.err
    assert "DID NOT FINISH" in ending.out
    assert "run: unknown (exit code 3)" in ending.out
