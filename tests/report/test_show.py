"""`rig report` and `rig show` as commands: which run is meant, and the timelines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from rig.cli.report import report
from rig.cli.show import show
from rig.errors import JournalError, UsageError
from rig.journal.records import AnswerMalformed, AnyRecord, LogLine, RequestEnded, RequestStarted
from rig.report.find import find_run
from rig.report.timeline import MAX_LINES, fault_timeline, request_timeline
from tests.analysis.checks.test_answers import say
from tests.analysis.generate import Shape, info_of, records_of, write_journal
from tests.analysis.tape import A, Tape


def test_a_run_is_found_by_path_by_name_and_as_the_last(sound_run: Path, lossy_run: Path, results: Path) -> None:
    os.utime(sound_run / "run.json", (1, 1))
    assert find_run("sound") == sound_run
    assert find_run(str(lossy_run.resolve())) == lossy_run.resolve()
    assert find_run("last") == lossy_run


def test_a_run_that_is_not_there_says_what_is(sound_run: Path) -> None:
    with pytest.raises(UsageError, match="sound"):
        find_run("none-such")


def test_no_run_at_all(results: Path) -> None:
    with pytest.raises(UsageError, match="no run in results"):
        find_run("last")


def test_the_exit_code_of_a_report_is_the_verdict(
    sound_run: Path, lossy_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(run="sound") == 0
    assert "sound: pass (exit code 0)" in capsys.readouterr().out
    assert report(run="lossy", markdown=True) == 1
    assert capsys.readouterr().out.startswith("## lossy: fail")


def test_a_torn_last_line_is_dropped_and_the_rest_reported(sound_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = sound_run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    assert report(run="sound") == 3
    assert "DID NOT FINISH" in capsys.readouterr().out


def test_a_journal_cut_off_at_any_byte_reports(lossy_run: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    journal = lossy_run / "journal.jsonl"
    whole = journal.read_bytes()
    for length in range(0, len(whole), len(whole) // 17):
        journal.write_bytes(whole[:length])
        assert report(run="lossy", as_json=True) in (1, 3)
        requests = json.loads(capsysbinary.readouterr().out)["requests"]
        ended = sum(requests[name] for name in ("completed", "error", "lost", "void", "unfinished"))
        assert requests["started"] == ended == whole[:length].count(b'"source":"load"')


def test_a_run_json_that_is_broken_is_an_error_of_the_journal(sound_run: Path) -> None:
    (sound_run / "run.json").write_text("{")
    with pytest.raises(JournalError, match=r"run\.json"):
        report(run="sound")


def test_the_timeline_of_a_fault(real_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(run="real", fault=1) == 0
    text = capsys.readouterr().out
    assert "fault 1: master-crash, aimed at node" in text
    for state in ("planned", "leased", "struck", "holding", "healed"):
        assert f"1 master-crash {state}" in text
    assert "0 node-crash struck" not in text
    assert "view      node-2 instances" in text
    assert "completed until here" in text


def test_the_timeline_of_a_lost_request(real_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = Shape(seed=4, lost_share=0.4)
    lost = next(r for r in records_of(shape) if isinstance(r, RequestEnded) and r.outcome == "lost")
    assert show(run="real", request=lost.id) == 0
    text = capsys.readouterr().out
    assert f"request {lost.id} (load" in text
    assert "lost (truncated)" in text
    assert "the last strike before it: fault 0, node-crash on node-" in text


def test_without_a_fault_or_request_the_phases_and_faults(lossy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(run="lossy") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("EMBEDDED CLUSTER")
    assert sum(" fault " in line for line in lines) == 30
    assert sum(" phase " in line for line in lines) == 3


@pytest.mark.parametrize(("fault", "request_id"), [(99, None), (None, "x1"), (1, "x1")])
def test_what_is_not_there_is_a_usage_error(lossy_run: Path, fault: int | None, request_id: str | None) -> None:
    with pytest.raises(UsageError):
        show(run="lossy", fault=fault, request=request_id)


def test_a_request_without_an_end_and_the_tail_of_one_with() -> None:
    tape = Tape()
    open_one = tape.started(5)
    cut = tape.error(6, 7, evidence="the server said: no | data: tail")
    tape.add(
        LogLine(t=6.5, node="node-1", at_t=6.4, at_error_s=0.1, text="its own log"),
        LogLine(t=6.6, node="node-2", at_t=6.5, at_error_s=0.1, text="another's log"),
    )
    assert "no end line" in "\n".join(request_timeline(tape.records, open_one))
    text = "\n".join(request_timeline(tape.records, cut))
    assert "data: tail" in text
    assert "its own log" in text
    assert "another's log" not in text


def test_a_request_that_was_sent_late_says_when_it_was_due() -> None:
    tape = Tape()
    name, open_one = tape.ok(20, 21), tape.started(22)

    def late() -> list[AnyRecord]:
        return [
            msgspec.structs.replace(record, planned_t=15.0) if isinstance(record, RequestStarted) else record
            for record in tape.records()
        ]

    assert "  due               15.000  -5.000\n  sent              20.000  +0.000" in "\n".join(
        request_timeline(late, name)
    )
    assert "  due               15.000  -7.000\n" in "\n".join(request_timeline(late, open_one))
    assert "due" not in "\n".join(request_timeline(tape.records, name))


def test_a_timeline_is_bounded(results: Path) -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110)
    for number in range(2000):
        tape.error(101 + number / 1000, 102 + number / 1000)
    lines = fault_timeline(tape.records, 0)
    assert len(lines) <= MAX_LINES + 10
    assert "cut at" in lines[-1]


def test_a_journal_of_three_hours_reports_in_seconds(results: Path) -> None:
    shape = Shape(duration_s=10_800, faults=68, requests=16_000, views=50_000, baseline_s=300)
    write_journal(results / "long", info_of(shape, run="long"), records_of(shape))
    before_s = os.times().user
    assert report(run="long", as_json=True) == 0
    assert os.times().user - before_s < 4.0  # about 1.1 s on an idle core


def test_an_altered_answer_is_shown_beside_the_one_before() -> None:
    tape = Tape()
    expected, got = ["one", ",", " two", ",", " three"], ["one", ",", " three"]
    names = [say(tape, at_t, expected if at_t < 20 else got) for at_t in (1.0, 2.0, 3.0, 31.0)]
    tape.fault(0, "freeze", 20, 25, hit=("node-3",))
    lines = request_timeline(tape.records, names[-1])
    at = lines.index("  canary numbers of lab/tiny-a, streamed")
    assert lines[at + 1 : at + 5] == [
        "  altered: shifted from token 3 on, ' two,' is missing",
        "    before one, two, three",
        "    now    one, three",
        "                 ^",
    ]
    assert "  answered as before the first fault" in request_timeline(tape.records, names[0])


def test_the_canary_that_was_not_learnt_and_the_malformed_answer_are_said_to_be() -> None:
    tape = Tape()
    name = say(tape, 1.0, ["one"])
    tape.add(AnswerMalformed(t=1.1, id=name, model=A, entry="node-1", what=["chunks after [DONE]"]))
    lines = request_timeline(tape.records, name)
    assert "  before the first fault it was not asked often enough: it is not judged" in lines
    assert "  malformed: chunks after [DONE]" in lines
