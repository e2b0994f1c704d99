"""Once another rig may have been at work on the nodes, nothing that fails is the target's."""

from __future__ import annotations

from rig.analysis.verdict import Verdict, verdict_of
from rig.journal.records import LockLost, RunEnded
from tests.analysis.tape import Tape


def run(*, lost_t: float | None = 150) -> Tape:
    """A freeze from 100 to 110 s, answers until 200 s; the lock was last this run's at `lost_t`, found out at 170 s."""
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.steady(60, 200, entry="node-2")
    if lost_t is not None:
        tape.add(LockLost(t=170, since_t=lost_t, reason="taken"), RunEnded(t=200, reason="aborted"))
    else:
        tape.end(200)
    return tape


def judged(tape: Tape) -> tuple[str, int]:
    return verdict_of(tape.analyse()).word, verdict_of(tape.analyse()).exit_code


def status(verdict: Verdict, name: str) -> str:
    return next(check.status for check in verdict.checks if check.name == name)


def test_what_failed_since_the_lock_was_last_ours_is_void() -> None:
    tape = run()
    tape.lost(140, 150, "empty", entry="node-2")
    tape.error(160, 161, entry="node-2")
    tape.lost(100, 220, "hung", entry="node-2")
    counts = tape.analyse().requests.total
    assert (counts.void, counts.lost, counts.error, counts.balanced) == (3, 0, 0, True)
    assert judged(tape) == ("unknown", 3)
    assert tape.analyse().unlocked_t == 150


def test_what_was_lost_before_that_is_the_targets_all_the_same() -> None:
    tape = run()
    tape.lost(140, 149.9, "empty", entry="node-2")
    assert tape.analyse().requests.total.lost == 1
    assert judged(tape)[0] == "fail"


def test_no_other_check_fails_the_target_then() -> None:
    tape = run(lost_t=300)
    tape.add(tape.change(0, "freeze", "unhealed", 120, hit=("node-3",)))
    verdict = verdict_of(tape.analyse())
    assert (verdict.word, status(verdict, "faults-healed")) == ("unknown", "unknown")
    check = next(check for check in verdict.checks if check.name == "faults-healed")
    assert check.summary.endswith("since 300.0 s another rig may have been at work on the nodes")
    tape = run(lost_t=None)
    tape.add(tape.change(0, "freeze", "unhealed", 120, hit=("node-3",)))
    assert status(verdict_of(tape.analyse()), "faults-healed") == "fail"


def test_a_void_failure_is_none_of_the_models() -> None:
    tape = run(lost_t=115)
    tape.error(116, 117, entry="node-2")
    assert tape.recovery().failures == 0
    tape = run(lost_t=118)
    tape.error(116, 117, entry="node-2")
    assert tape.recovery().failures == 1
