"""A tracker that only decides while a run goes on, beside one that keeps everything for the report."""

from __future__ import annotations

from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.settings import settings_of
from rig.journal.records import FaultChanged
from tests.analysis.generate import Shape, info_of, records_of


def test_it_decides_the_same_and_lets_go_of_what_is_over() -> None:
    shape = Shape(duration_s=7200.0, faults=45, requests=9000, views=3000, lost_share=0.2, seed=7)
    settings = settings_of(info_of(shape))
    live, whole = RecoveryTracker(settings, live=True), RecoveryTracker(settings)
    most, asked, newest, next_look_t = 0, set[bool | None](), 0, 0.0
    for record in records_of(shape):
        live.feed(record)
        whole.feed(record)
        if isinstance(record, FaultChanged):
            newest = max(newest, record.fault)
        if record.t >= next_look_t:
            next_look_t = record.t + 2.0
            decided = [tracker.recovered(newest, record.t) for tracker in (live, whole)]
            assert decided[0] == decided[1], record
            assert live.settled_t() == whole.settled_t()
            asked.add(decided[0])
        most = max(most, len(live.context.faults.by_number))
    assert asked >= {None, True}
    assert len(whole.context.faults.by_number) == 45
    assert most < 12, "those of the last minutes"
    assert live.recoveries == []
    assert len(whole.recoveries) > 60
    faults = live.context.faults
    assert len(faults.struck) == len(faults.strikes) == len(faults.by_number)


def test_a_fault_that_can_still_be_asked_for_is_kept_as_long() -> None:
    shape = Shape(duration_s=7200.0, faults=45, requests=9000, views=0, seed=3)
    settings = settings_of(info_of(shape))
    tracker = RecoveryTracker(settings, live=True)
    closed: dict[int, float] = {}
    for record in records_of(shape):
        tracker.feed(record)
        if not isinstance(record, FaultChanged):
            continue
        if record.state == "healed":
            closed[record.fault] = record.t
        known = tracker.context.faults.by_number
        assert all(number in known for number, t in closed.items() if record.t <= t + settings.settle_s), record
    assert len(closed) > 30
