from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from rig.clock import RunClock
from rig.errors import JournalError
from rig.journal.read import Run, read_run
from rig.journal.records import FaultChanged, PhaseStarted, RequestEnded, RunEnded, ViewChanged
from rig.journal.run import RunInfo, write_run
from rig.journal.write import Journal, journal_name

PHASE = b'{"kind":"phase","t":1.0,"phase":"faults"}\n'


@pytest.fixture
def folder(tmp_path: Path, info: RunInfo) -> Path:
    write_run(tmp_path, info)
    return tmp_path


def _run(folder: Path, *files: bytes) -> Run:
    for number, content in enumerate(files):
        (folder / journal_name(number)).write_bytes(content)
    return read_run(folder)


def test_records_come_back_as_they_were_written_across_files(folder: Path) -> None:
    journal = Journal(folder, RunClock(), rotate_bytes=300)
    written = [
        PhaseStarted(t=0.0, phase="setup"),
        ViewChanged(t=1.0, node="node1", facet="nodes", since_t=None, value=["a", "b"]),
        FaultChanged(t=2.0, fault=0, fault_kind="freeze", state="struck", aim="node node1", nodes=["node1"], at_t=1.9),
        RequestEnded(t=3.0, id="1", outcome="lost", how="hung", started_t=2.0, ended_t=3.0, evidence="é\n\0"),
        RunEnded(t=4.0, reason="finished"),
    ]
    for record in written:
        journal.write(record)
    journal.close()
    assert (folder / journal_name(1)).exists()
    run = read_run(folder)
    assert list(run.records()) == written
    assert list(run.records()) == written
    assert run.notes.lines == 5
    assert not run.notes.torn


def test_a_run_without_a_first_record_is_a_run(folder: Path) -> None:
    assert list(read_run(folder).records()) == []


def test_a_torn_last_line_is_dropped_and_said(folder: Path) -> None:
    run = _run(folder, PHASE + PHASE[:-10])
    assert len(list(run.records())) == 1
    assert run.notes.torn
    assert run.notes.broken_count == 0


def test_a_line_without_its_end_is_torn_even_when_it_parses(folder: Path) -> None:
    run = _run(folder, PHASE + PHASE[:-1])
    assert len(list(run.records())) == 1
    assert run.notes.torn


def test_a_line_that_is_being_written_is_torn_and_its_rest_is_no_line(folder: Path) -> None:
    run = _run(folder, PHASE + PHASE[:-9])
    (file,) = run.files()
    blocks = file.blocks()
    assert len(next(blocks)) == 1
    with (folder / journal_name(0)).open("ab") as growing:
        growing.write(PHASE[-9:] + PHASE)
    assert list(blocks) == []
    assert (file.notes.torn, file.notes.broken_count) == (True, 0)
    assert len(list(run.records())) == 3


def test_only_the_last_file_may_be_torn(folder: Path) -> None:
    run = _run(folder, PHASE[:-10], PHASE)
    assert len(list(run.records())) == 1
    assert not run.notes.torn
    assert [(line.file, line.line) for line in run.notes.broken] == [("journal.jsonl", 1)]


@pytest.mark.parametrize(
    "bad",
    [
        b"\n",
        b"\0\0\0\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"{}\n",
        b'{"kind":7}\n',
        b'{"kind":"phase","t":1.0,"phase":"lunch"}\n',
        b'{"kind":"phase","t":1.0}\n',
        b'-1","index":996}\n',
        b'{"kind":"newer"} and more\n',
    ],
)
def test_a_broken_line_is_numbered_and_the_rest_is_read(folder: Path, bad: bytes) -> None:
    run = _run(folder, PHASE + bad + PHASE)
    assert len(list(run.records())) == 2
    assert [(line.file, line.line) for line in run.notes.broken] == [("journal.jsonl", 2)]
    assert run.notes.unknown == {}


def test_kinds_of_a_newer_rig_are_counted_and_new_fields_ignored(folder: Path) -> None:
    newer = b'{"kind":"phase","t":2.0,"phase":"faults","colour":"red"}\n'
    run = _run(folder, b'{"kind":"weather","t":1.0}\n' * 3 + newer)
    assert list(run.records()) == [PhaseStarted(t=2.0, phase="faults")]
    assert run.notes.unknown == {"weather": 3}
    assert run.notes.broken_count == 0


def test_broken_lines_are_all_counted_but_not_all_kept(folder: Path) -> None:
    run = _run(folder, b"?\n" * 1000 + PHASE)
    assert len(list(run.records())) == 1
    assert run.notes.broken_count == 1000
    assert len(run.notes.broken) == 100


def test_a_file_that_is_missing_in_between_is_said(folder: Path) -> None:
    run = _run(folder, PHASE)
    (folder / journal_name(2)).write_bytes(PHASE)
    assert len(list(run.records())) == 1
    assert [line.file for line in run.notes.broken] == [journal_name(1)]


def test_a_journal_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / journal_name(0)).mkdir()
    with pytest.raises(JournalError, match="cannot read"):
        list(read_run(folder).records())


def test_a_folder_that_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"run\.json"):
        read_run(tmp_path)


def test_memory_is_flat(folder: Path) -> None:
    (folder / journal_name(0)).write_bytes(PHASE * 50_000)
    run = read_run(folder)
    tracemalloc.start()
    count = sum(1 for _ in run.records())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 500_000
