"""The audit has teeth: the journal is falsified in one place, and the comparison names that very thing."""

from __future__ import annotations

import pytest

from rig.journal.records import Unwedged
from tests.audit.falsify import (
    Case,
    Change,
    assert_named,
    ended,
    offset_off,
    told,
    unwedged,
    without,
    without_end,
    without_fault,
    without_request,
)
from tests.audit.world import TABLE

CASES: list[Case] = [
    ("an end dropped", without_end("r1"), "request r1 ", "no end"),
    ("a request dropped", without_request("r1"), "request r1", "not in the journal"),
    ("lost told as completed", ended("r6", outcome="completed", how=None, finish_reason="stop"), "request r6 ", "cut"),
    ("empty told as truncated", ended("r7", how="truncated"), "request r7 ", "cut"),
    ("truncated told as empty", ended("r6", how="empty"), "request r6 ", "cut"),
    ("hung told as overdue", ended("r5", how="overdue"), "request r5 ", "left after"),
    ("hung told as error", ended("r5", outcome="error", how=None, evidence="cannot be"), "request r5 ", "left 200"),
    ("error told as lost", ended("r3", outcome="lost", how="truncated"), "request r3 ", "error 200"),
    ("404 told as 503", ended("r4", status=503), "request r4 ", "error 404"),
    ("completed told as lost", ended("r1", outcome="lost", how="truncated"), "request r1 ", "finished"),
    ("another finish reason", ended("r1", finish_reason="length"), "request r1 ", "finish reason stop"),
    ("a token too few", ended("r1", tokens=4), "request r1 ", "5 tokens"),
    ("a token too many, hung", ended("r5", tokens=4), "request r5 ", "3 tokens"),
    ("another usage", ended("r2", usage_tokens=5), "request r2 ", "4 tokens"),
    ("damage that was none", ended("r1", damaged="a token is missing"), "request r1 ", "finished"),
    ("an unclean end that was clean", ended("r1", unclean_end="ended without [DONE]"), "request r1 ", "finished"),
    ("another response", ended("r1", response_id="response-r2"), "request r1 ", "response-r1"),
    ("left before the deadline", ended("r5", ended_t=7.0), "request r5 ", "left 200"),
    ("a body before its total deadline", ended("r9", ended_t=8.0), "request r9 ", "left 200"),
    ("an answer that never was", ended("r11", status=200), "request r11 ", "never reached"),
    ("refused while it served", ended("r11", started_t=33.0, ended_t=33.1), "request r11 ", "serving all along"),
    ("broken long before the death", ended("r10", ended_t=29.9), "request r10 ", "lived on"),
    ("broken long after the death", ended("r10", ended_t=32.5), "request r10 ", "died by 30.105"),
    ("completed though the main died", ended("r10", outcome="completed", finish_reason="stop"), "request r10 ", "died"),
    ("a token before it was sent", ended("r1", last_token_t=1.4), "request r1 ", "sent at 1.489"),
    ("a strike too early", told(0, {"struck": -1.0}), "fault 0", "state T"),
    ("a strike too late", told(0, {"struck": 1.0}), "fault 0", "state T"),
    ("a heal too early", told(0, {"healed": -0.5, "healing": -0.5}), "fault 0", "22.05"),
    ("a heal too late", told(0, {"healed": 1.0}), "fault 0", "seen at 22.050"),
    ("another pid frozen", told(0, {}, struck_pids="200:99500 201:99510 102:99550"), "fault 0", "102 of node-1"),
    ("a pid left out", told(0, {}, struck_pids="200:99500 201:99510"), "fault 0", "runner 202 of node-2"),
    ("a pid nobody has", told(0, {}, struck_pids="200:99500 201:99510 202:99550 777:1"), "fault 0", "no such process"),
    ("another process of that pid", told(0, {}, struck_pids="200:99200 201:99510 202:99550"), "fault 0", "begun at -5"),
    ("a crash too early", told(1, {"struck": -1.0, "leased": -1.0}), "fault 1", "ended at 30.105"),
    ("a crash too late", told(1, {"struck": 0.5}), "fault 1", "ended at 30.105"),
    ("a part of the tree spared", told(1, {}, struck_pids="100:99500 101:99510"), "fault 1", "runner 102 of node-1"),
    ("another new main", told(1, {}, healed_new_main="301:103130"), "fault 1", "no such main"),
    ("a restart too early", told(1, {"healed": -0.6}), "fault 1", "served from"),
    ("a restart too late", told(1, {"healed": 2.0}), "fault 1", "served since 31.900"),
    ("another runner", told(2, {}, struck_pids="201:99510"), "fault 2", "tracker 201"),
    ("a runner kill too late", told(2, {"struck": 1.0, "healed": 1.0}), "fault 2", "ended at 40.000"),
    ("a partition too early", told(3, {"struck": -1.0}), "fault 3", "rules changed at 49.990"),
    ("a partition healed too early", told(3, {"healed": -1.0}), "fault 3", "rules changed at 52.090"),
    ("another table", told(3, {}, struck_table="rig_y"), "fault 3", "never had it"),
    ("more packets than were dropped", told(3, {}, healed_packets="99"), "fault 3", "21 packets dropped"),
    ("no packets dropped", told(3, {}, struck_packets="0"), "fault 3", "21 packets dropped"),
    ("an offset that is off", offset_off, "offset of node-1", "1000.0"),
    ("a freeze never told", without_fault(0), "main 200 of node-2", "state T from 20.030"),
    ("a crash never told", without_fault(1), "main 100 of node-1", "status -9"),
    ("a restart never told", without_fault(1), "main 300 of node-1", "began at"),
    ("a runner kill never told", without_fault(2), "runner 202 of node-2", "status -9"),
    ("a partition never told", without_fault(3), "node-1", f"inet {TABLE}"),
    ("unwedging that was none", unwedged, "unwedging of node-1", "0 mains"),
    ("unwedging never told", without(lambda record: isinstance(record, Unwedged)), "main 200 of node-2", "status -9"),
]


@pytest.mark.parametrize(("falsify", "about", "word"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_what_is_falsified_is_named(falsify: Change, about: str, word: str) -> None:
    assert_named(falsify, about, word)
