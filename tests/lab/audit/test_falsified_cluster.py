"""The audit has teeth: ledger or samples are falsified in one place, and the comparison names that very thing."""

from __future__ import annotations

import pytest

from rig.lab import ledger
from rig.lab.audit import falsify as by
from rig.lab.audit.falsify import Case, Change, assert_named, closed, entry, exited, opened, sample, seen
from rig.lab.audit.world import ZERO
from rig.lab.embedded import sampler

CASES: list[Case] = [
    ("a request it never took", opened("r10"), "request r10 ", "never reached"),
    ("a request nobody sent", by.another_request, "no name", "opened at 5.000"),
    ("a request sent twice", by.sent_twice, "request r1 ", "node-2"),
    ("a request taken twice", by.taken_twice, "request r1 ", "sent once"),
    ("a request taken elsewhere", opened("r1", node="node-2"), "request r1 ", "sent to node-1"),
    ("a request taken before it was sent", opened("r1", t=ZERO + 0.5), "request r1 ", "opened before, at 0.500"),
    ("another model", opened("r1", model="lab/tiny-b"), "request r1 ", "lab/tiny-b"),
    ("an end it never wrote", closed("r1"), "request r1 ", "lived on"),
    ("finished told as cut", closed("r1", end="cut"), "request r1 ", "cut 200"),
    ("left told as finished", closed("r5", end="finished", t=ZERO + 7.0), "request r5 ", "finished"),
    ("left too early", closed("r5", t=ZERO + 7.5), "request r5 ", "left 200 at 7.500"),
    ("left too late", closed("r5", t=ZERO + 9.0), "request r5 ", "left 200 at 9.000"),
    ("a later last token", closed("r5", last_token_t=ZERO + 6.0), "request r5 ", "last token at 6.000"),
    ("another error", closed("r3", message="disk full"), "request r3 ", "disk full"),
    ("never in state T", sample(seen(201, "T", 19.0)), "fault 0", "state T: never"),
    ("woke for a moment", by.woke_for_a_moment, "fault 0", "state T: 20.030 to 21.000, 21.100 to 23.050"),
    ("stopped for ever", sample(seen(202, "S", 20.0)), "fault 0", "state T until 40.020"),
    ("stopped by somebody else", by.another_stop, "main 300 of node-1", "state T from 45.000"),
    ("killed by somebody else", by.another_kill, "runner 350 of node-1", "status -9"),
    ("killed on another node", by.another_process_killed_by_the_crash, "runner 250 of node-2", "status -9"),
    ("one that survived", by.survived, "fault 1", "it lives"),
    ("a segmentation fault", exited(202, status=-11), "runner 202 of node-2", "status -11"),
    ("not killed but ended", exited(100, status=1), "fault 1", "status 1"),
    ("a runner kill that ended its main", exited(200, t=ZERO + 40.0), "fault 2", "main 200 of node-2 ended"),
    ("a main during the hold", by.main_in_between, "fault 1", "main 290 of node-1 began at 30.500"),
    ("a process out of sight", by.out_of_sight, "main 300 of node-1", "nobody saw its end"),
    ("a main that never says it serves", by.never_serving, "main 390 of node-1", "never said that it serves"),
    ("a main that nobody started", by.another_main, "main 390 of node-1", "began at 55.000"),
    ("a rule that nobody loaded", by.another_rule, "node-2", "inet other"),
    ("rules seen too late", by.rules_seen_late, "fault 3", "the sampler saw it at 51.000"),
    ("rules that stayed", by.rules_stayed, "fault 3", "still stand"),
    ("half a cut", by.half_cut, "fault 3", "no rule drops fe80::77:2 in"),
    (
        "rules the sampler never saw",
        sample(lambda each: isinstance(each, sampler.NetworkSeen)),
        "fault 3",
        "the sampler never saw it",
    ),
    (
        "a runner of another model",
        entry(ledger.ProcessStarted, lambda each: each.pid == 202, detail="x lab/b"),
        "fault 2",
        "lab/b",
    ),
    ("a main that never served", entry(ledger.Serving, lambda each: each.pid == 300), "fault 1", "served from never"),
]


@pytest.mark.parametrize(("falsify", "about", "word"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_what_is_falsified_is_named(falsify: Change, about: str, word: str) -> None:
    assert_named(falsify, about, word)
