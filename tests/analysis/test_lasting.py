"""When it is calm, and what lasts too long then."""

from __future__ import annotations

import math

from rig.analysis.symptoms.calm import Calm
from rig.analysis.symptoms.elections import ElectionWatch
from rig.analysis.symptoms.lasting import MAX_KEPT, Lasting
from rig.journal.records import AnyRecord, FaultState, MasterSeen, PhaseStarted
from tests.analysis.tape import Tape


def calm_after(*records: AnyRecord, pace: float = 1.0) -> Calm:
    calm = Calm(pace)
    for record in records:
        calm.feed(record)
    return calm


def begun(t: float = 0.0) -> PhaseStarted:
    return PhaseStarted(t=t, phase="baseline")


def fault(number: int, state: FaultState, at_t: float, late_s: float = 0.2) -> AnyRecord:
    return Tape().change(number, "freeze", state, at_t, late_s=late_s)


def restarted(t: float) -> AnyRecord:
    tape = Tape()
    tape.unwedged(0, "node-1", t - 5, t)
    return tape.records()[0]


def since(*records: AnyRecord) -> float:
    return calm_after(*records).since_t


def test_calm_begins_with_the_load() -> None:
    assert since() == math.inf
    assert since(PhaseStarted(t=3.0, phase="drain")) == math.inf
    assert since(begun(3.0), PhaseStarted(t=60.0, phase="faults")) == 3.0
    assert since(fault(0, "leased", 2.0), begun(3.0)) == math.inf


def test_calm_ends_with_a_fault_and_begins_when_the_last_is_over() -> None:
    one, other = fault(0, "struck", 10.0), fault(1, "leased", 12.0)
    assert since(begun(), one) == math.inf
    assert since(begun(), one, fault(0, "healed", 20.0)) == 20.2
    assert since(begun(), one, fault(0, "healed", 20.0, late_s=-1.0)) == 20.0  # by the later of two clocks
    assert since(begun(), one, other, fault(0, "healed", 20.0)) == math.inf
    assert since(begun(), one, other, fault(0, "healed", 20.0), fault(1, "skipped", 30.0)) == 30.2
    assert since(begun(), one, fault(0, "invalid", 20.0)) == math.inf
    assert since(begun(), fault(0, "planned", 10.0), fault(0, "skipped", 20.0)) == 0.0  # nothing was done


def test_a_restart_by_the_rig_disturbs_as_well() -> None:
    assert since(begun(), restarted(50.0)) == 50.0
    assert since(begun(), fault(0, "struck", 10.0), restarted(50.0)) == math.inf


def test_what_lasts_is_counted_from_the_end_of_the_grace() -> None:
    calm = calm_after(begun(100.0))
    assert calm.lasting(0.0, 160.0) == 0.0
    assert calm.lasting(0.0, 170.0) == 10.0
    assert calm.lasting(150.0, 170.0) == 0.0
    assert calm.lasting(150.0, 213.0) == 3.0


def test_the_grace_is_shorter_at_a_faster_pace_but_never_nothing() -> None:
    assert calm_after(pace=6.0).grace_s == 10.0
    assert calm_after(pace=60.0).grace_s == 4.0


def found(lasting: Lasting) -> list[tuple[float, float, str]]:
    return [(one.from_t, one.to_t, one.text) for one in lasting.found]


def test_what_holds_for_longer_than_the_grace_is_found_once_with_its_length() -> None:
    lasting = Lasting(calm_after(begun()))
    lasting.tell(100.0, {"a": "odd"})
    lasting.tell(110.0, {"a": "odd", "b": "queer"})
    lasting.look(159.0)
    assert found(lasting) == []
    lasting.look(161.0)
    lasting.look(165.0)
    assert found(lasting) == [(100.0, 165.0, "odd")]
    lasting.tell(180.0, {"b": "queer"})  # it ends with that, and is noted up to then
    lasting.look(200.0)
    assert found(lasting) == [(100.0, 180.0, "odd"), (110.0, 200.0, "queer")]


def test_what_holds_again_is_another_time() -> None:
    lasting = Lasting(calm_after(begun()))
    for from_t in (100.0, 200.0):
        lasting.tell(from_t, {"a": "odd"})
        lasting.tell(from_t + 70, {})
    assert found(lasting) == [(100.0, 170.0, "odd"), (200.0, 270.0, "odd")]


def test_two_things_that_began_together_are_two() -> None:
    lasting = Lasting(calm_after(begun()))
    lasting.tell(100.0, {"a": "odd", "b": "queer"})
    lasting.look(161.0)
    lasting.look(162.0)
    assert found(lasting) == [(100.0, 162.0, "odd"), (100.0, 162.0, "queer")]


def test_a_look_at_which_nothing_holds_in_calm_weather_says_that_all_is_well() -> None:
    lasting = Lasting(calm_after(begun(10.0)))
    lasting.look(200.0)  # nobody had said anything yet
    assert lasting.judged == 0
    lasting.tell(200.0, {})
    for now in (60.0, 70.0, 70.5, 71.5):
        lasting.look(now)
    assert lasting.judged == 2
    lasting.tell(72.0, {"a": "odd"})
    lasting.look(73.0)
    assert lasting.judged == 3  # at 72, before it was said to hold


def test_no_more_than_so_many_are_kept() -> None:
    lasting = Lasting(calm_after(begun()))
    lasting.tell(100.0, {f"{n}": f"{n}" for n in range(MAX_KEPT + 10)})
    lasting.look(200.0)
    assert len(lasting.found) == MAX_KEPT


def elected(t: float, node: str = "a", source: str = "log") -> MasterSeen:
    return MasterSeen(t=t + 0.3, node=node, is_master=False, source="log" if source == "log" else "files", at_t=t)


def watched(*records: AnyRecord) -> ElectionWatch:
    calm = Calm(1.0)
    watch = ElectionWatch(calm)
    for record in records:
        calm.feed(record)
        watch.feed(record)
    return watch


def test_four_elections_of_a_node_in_one_calm_time_are_without_end() -> None:
    times = [100.0, 101.0, 102.0, 103.0]
    assert watched(begun(), *map(elected, times[:3])).endless() == []
    assert watched(begun(), *map(elected, times)).endless() == [
        "a: 4 elections from 100.0 to 103.0 s, calm since 0.0 s"
    ]
    assert watched(begun(), *(elected(t, "ab"[n % 2]) for n, t in enumerate(times))).endless() == []
    assert watched(begun(), *(elected(t, source="files") for t in times)).endless() == []
    assert watched(begun(50.0), *map(elected, times)).endless() == []  # in the grace
    assert len(watched(begun(), *(elected(60.5 + n / 10) for n in range(4))).endless()) == 1
    apart = [fault(0, "struck", 102.0), fault(0, "healed", 103.0)]
    assert watched(begun(), *map(elected, times[:2]), *apart, *map(elected, (170.0, 171.0))).endless() == []


def test_elections_are_judged_while_it_is_calm_and_once_a_master_was_seen() -> None:
    assert watched(begun(), Tape().change(0, "freeze", "planned", 100.0)).judged == 0
    looks = [Tape().change(0, "freeze", "planned", t) for t in (60.0, 60.5, 61.5)]
    assert watched(begun(), elected(1.0), *looks).judged == 2
