"""What is learnt in calm weather, and what is judged after it, from records written out by hand."""

from __future__ import annotations

import itertools
from typing import Any

from rig.analysis.answers.variants import Asked
from rig.analysis.answers.watch import MAX_LISTED, AnswerWatch
from rig.journal.records import AnyRecord, CanaryAnswered, FaultChanged, PhaseStarted, Reachability, ViewChanged

ONE, RIVER = ["one", ",", " two", ",", " three"], ["The", " river", " flows", " down"]
NUMBERS = Asked("m", "numbers", streamed=True)
_ids = itertools.count()


def answer(t: float, pieces: list[str], canary: str = "numbers", **more: Any) -> CanaryAnswered:
    given: dict[str, Any] = {"entry": "node-1", "started_t": t - 0.5, "streamed": True, "model": "m"} | more
    return CanaryAnswered(t=t, id=f"r{next(_ids)}", canary=canary, digest="".join(pieces), pieces=pieces, **given)


def struck(t: float, fault: int = 0) -> FaultChanged:
    return FaultChanged(t=t, fault=fault, fault_kind="freeze", state="struck", aim="node n", at_t=t)


def listed(t: float, node: str, *instances: str) -> ViewChanged:
    value = {name: {"model": "m", "runners": {f"{name}-node": "r"}, "port": 1} for name in instances}
    return ViewChanged(t=t, node=node, facet="instances", since_t=None, value=value)


def watched(*records: AnyRecord) -> AnswerWatch:
    watch = AnswerWatch()
    for record in sorted(records, key=lambda record: record.t):
        watch.feed(record)
    return watch


LEARNT: tuple[AnyRecord, ...] = (
    *(answer(t, ONE) for t in (1, 2, 3)),
    *(answer(t, RIVER, "river") for t in (1, 2, 3)),
)


def test_the_same_answer_is_judged_and_not_altered() -> None:
    watch = watched(*LEARNT, struck(10), answer(11, ONE), answer(10.2, ONE))
    assert (watch.judged, watch.exposed, watch.altered_count) == (2, 1, 0)
    assert set(watch.stable) == {NUMBERS, NUMBERS._replace(canary="river")}


def test_an_altered_answer_is_told_with_who_gave_it_and_after_what() -> None:
    watch = watched(
        *LEARNT,
        ViewChanged(t=1, node="node-2", facet="node_id", since_t=None, value="i-node"),
        listed(1, "node-1", "i"),
        struck(10, fault=3),
        answer(12, ["one", ",", " three"], entry="node-2"),
    )
    (altered,) = watch.altered
    assert (altered.how, altered.difference.token, altered.asked, altered.entry) == ("shifted", 3, NUMBERS, "node-2")
    assert (altered.instance, altered.nodes) == ("i", ("node-2",))
    assert altered.strike is not None
    assert (altered.strike.fault, altered.strike.at_t) == (3, 10)


def test_the_text_of_a_known_answer_is_remembered() -> None:
    silent = answer(12, RIVER)
    again = CanaryAnswered(t=13, id="x", canary="numbers", model="m", entry="e", streamed=True, started_t=12,
                           digest=silent.digest)  # fmt: skip
    watch = watched(*LEARNT, struck(10), silent, again)
    assert [altered.how for altered in watch.altered] == ["swapped", "swapped"]


def test_an_answer_that_varied_before_is_never_judged() -> None:
    watch = watched(*LEARNT, answer(4, RIVER), struck(10), answer(11, ["?"]))
    assert (watch.varied, watch.judged, watch.altered_count) == ([NUMBERS], 0, 0)


def test_an_answer_that_was_given_too_rarely_is_never_judged() -> None:
    watch = watched(answer(1, ONE), answer(2, ONE), struck(10), answer(11, RIVER))
    assert (watch.stable, watch.judged) == ([], 0)


def test_answers_after_the_phase_without_faults_are_not_learnt() -> None:
    faults = PhaseStarted(t=2.5, phase="faults")
    assert watched(*LEARNT, faults).stable == []


def test_forms_are_not_compared_with_each_other() -> None:
    whole = [answer(t, ["one, two, three!"], streamed=False) for t in (1, 2, 3)]
    watch = watched(*LEARNT, *whole, struck(10), answer(11, ["one, two, three!"], streamed=False))
    assert (watch.judged, watch.altered_count) == (1, 0)


def test_what_goes_another_way_and_back_without_a_strike_is_the_targets_own_habit() -> None:
    forked = ["one", ",", " too"]
    watch = watched(*LEARNT, struck(10), answer(12, ONE), answer(14, forked))
    assert (watch.altered_count, watch.wavering_count) == (0, 1)
    watch = watched(*LEARNT, struck(10), answer(12, ONE), struck(13, 1), answer(14, forked))
    assert (watch.altered_count, watch.wavering_count) == (1, 0), "a fault came between"
    watch = watched(*LEARNT, struck(10), answer(12, ONE), answer(14, RIVER))
    assert (watch.altered_count, watch.wavering_count) == (1, 0), "no rounding makes another's answer"
    watch = watched(*LEARNT, struck(10), answer(12, ONE), answer(14, forked, entry="node-2"))
    assert (watch.altered_count, watch.wavering_count) == (1, 0), "through another node"


def test_replicas_that_answer_otherwise_each_in_its_own_way() -> None:
    apart = [answer(t, ONE if t % 2 else RIVER, entry=f"node-{t % 2}") for t in range(1, 9)]
    (line,) = watched(*apart).apart()
    assert line == "numbers of m, streamed: through node-0: 'The river flows down'; through node-1: 'one, two, three'"
    assert watched(*apart[:2]).apart() == [], "once each says nothing"
    mixed = [*apart, answer(9, RIVER, entry="node-1")]
    assert watched(*mixed).apart() == [], "it varies, whoever answers"


def test_instances_are_told_apart_where_one_is_listed_at_a_time() -> None:
    records: list[AnyRecord] = [listed(0, "node-1", "a"), *(answer(t, ONE) for t in (1, 2))]
    records += [listed(3, "node-1", "b"), *(answer(t, RIVER) for t in (4, 5))]
    (line,) = watched(*records).apart()
    assert "by instance a: 'one, two, three'; by instance b" in line
    both = [listed(0, "node-1", "a", "b"), *records[1:3], *records[4:]]
    assert watched(*both).apart() == [], "with two of them nobody knows who answered"


def test_what_an_unreachable_node_showed_last_does_not_hide_the_instance() -> None:
    gone = Reachability(t=4, node="node-9", since_t=None, reachable=False)
    watch = watched(
        *LEARNT, listed(1, "node-9", "old"), gone, listed(5, "node-1", "new"), struck(10), answer(11, RIVER)
    )
    assert [altered.instance for altered in watch.altered] == ["new"]


def test_cross_talk_before_any_fault() -> None:
    watch = watched(*LEARNT, answer(4, RIVER))
    assert watch.crossed() == ["numbers of m, streamed: 1 times the answer to river, through node-1"]
    assert watched(*LEARNT).crossed() == []


def test_characters_torn_between_chunks() -> None:
    torn = [answer(t, ["Gr", "\ufffd", "\ufffd", "n"], "colours") for t in (1, 2, 3)]
    whole = [answer(t, ["Grün"], "colours", streamed=False) for t in (1, 2, 3)]
    assert watched(*torn, *whole).torn() == [
        "colours of m, streamed: characters were torn between chunks that are whole without streaming"
    ]
    same = [answer(t, ["Gr\ufffd\ufffdn"], "colours", streamed=False) for t in (1, 2, 3)]
    assert watched(*torn, *same).torn() == []


def test_memory_is_bounded() -> None:
    many = [answer(20 + n / 100, [f"answer {n}"]) for n in range(1500)]
    watch = watched(*LEARNT, struck(10), *many)
    assert watch.altered_count + watch.wavering_count == 1500
    assert len(watch.altered) == MAX_LISTED
    learnt = watched(*(answer(n / 100, [f"answer {n}"]) for n in range(1500)))
    (variants,) = learnt.variants.values()
    assert (len(variants.by_digest), variants.count) == (64, 1500)
