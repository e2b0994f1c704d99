"""Batches: wherever and however large they are made, the report is the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from rig.analysis.analyse import Analysis, analyse, analyse_batches
from rig.analysis.intake.batches import Batch, Batcher
from rig.analysis.intake.reading import beside, here
from rig.analysis.verdict import verdict_of
from rig.errors import JournalError
from rig.journal.read import read_run
from rig.journal.records import AnyRecord, InstanceServed, RequestEnded, RequestStarted, Served, ViewChanged
from rig.journal.run import write_run
from rig.journal.write import journal_name
from rig.report.json import report_json
from tests.analysis.generate import Shape, info_of, records_of

pytestmark = pytest.mark.processes

LOSSY = Shape(lost_share=0.5, served=True, faults=8, requests=2000, seed=3)


def told(analysis: Analysis) -> dict[str, object]:
    return report_json(analysis, verdict_of(analysis))


def cut(records: list[AnyRecord], size: int) -> Iterator[Batch]:
    batcher, rest = Batcher(), iter(records)
    while some := list(islice(rest, size)):
        batcher.feed(some)
        yield batcher.cut()


def damaged(records: list[AnyRecord], rng: random.Random) -> list[AnyRecord]:
    """Lines are missing, and requests begin and end again under an id that was used before."""
    kept = [record for record in records if rng.random() > 0.02]
    again = [r for r in kept if isinstance(r, RequestStarted | RequestEnded) and rng.random() < 0.02]
    moved = [msgspec.structs.replace(record, t=record.t + rng.uniform(0.0, 3.0)) for record in again]
    return sorted([*kept, *moved], key=lambda record: record.t)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_said_does_not_depend_on_where_batches_end(seed: int) -> None:
    rng = random.Random(seed)
    info, records = info_of(LOSSY), damaged(records_of(LOSSY), rng)
    whole = analyse(info, records)
    assert (whole.orphans, whole.repeated) != (0, 0)
    for size in (1, 13, 700):
        found = analyse_batches(info, cut(records, size))
        assert (found.orphans, found.repeated) == (whole.orphans, whole.repeated)
        assert told(found) == told(whole)


@pytest.mark.parametrize(
    ("lines", "orphans", "repeated", "ended"),
    [
        ("+a -a", 0, 0, 1),
        ("-a +a -a", 1, 0, 1),
        ("+a +a -a", 0, 1, 1),
        ("+a +a -a -a", 1, 1, 1),  # its end is the second's; then nothing is in flight
        ("+a -a -a", 1, 0, 1),
        ("+a -a +a -a", 0, 0, 2),
        ("+a +b -a +a -b -a -b", 1, 0, 3),
    ],
)
def test_starts_and_ends_are_paired_in_their_order_in_any_batches(
    lines: str, orphans: int, repeated: int, ended: int
) -> None:
    records = [line(float(t), sign, name) for t, (sign, name) in enumerate(lines.split())]
    for size in range(1, len(records) + 1):
        found = analyse_batches(info_of(Shape()), cut(records, size))
        assert (found.orphans, found.repeated, found.requests.total.completed) == (orphans, repeated, ended), size
        assert found.requests.total.balanced or repeated


def line(t: float, sign: str, name: str) -> AnyRecord:
    if sign == "-":
        return RequestEnded(t=t, id=name, outcome="completed", started_t=t - 0.5, ended_t=t)
    return RequestStarted(
        t=t, id=name, source="load", client="c0", model="lab/tiny-a", entry="node-1", planned_t=t, streamed=True,
        prompt_tokens=1, max_tokens=1,
    )  # fmt: skip


def test_who_served_what_is_read_as_it_was_written_before() -> None:
    records = records_of(LOSSY)
    before: list[AnyRecord] = []
    for record in records:
        if isinstance(record, InstanceServed):
            t, node, instance = record.t, record.node, record.instance
            before += [Served(t=t, node=node, response_id=name, instance=instance) for name in record.response_ids]
        else:
            before.append(record)
    without = [record for record in records if not isinstance(record, InstanceServed)]
    found = told(analyse(info_of(LOSSY), records))
    assert found == told(analyse(info_of(LOSSY), before))
    assert found != told(analyse(info_of(LOSSY), without))


@pytest.fixture
def long_run(tmp_path: Path) -> Path:
    """In four files, with a line that is none, one of a kind that nobody knows, and a torn end."""
    lines = [msgspec.json.encode(record) + b"\n" for record in records_of(LOSSY)]
    lines[50] = b"{not a record\n"
    lines[60] = b'{"kind":"of tomorrow","t":1.0}\n'
    lines[-1] = lines[-1][:-5]
    write_run(tmp_path, info_of(LOSSY))
    step = len(lines) // 4 + 1
    for number in range(4):
        (tmp_path / journal_name(number)).write_bytes(b"".join(lines[number * step : (number + 1) * step]))
    return tmp_path


def test_two_processes_beside_say_what_one_says(long_run: Path) -> None:
    one, other = read_run(long_run), read_run(long_run)
    alone = analyse_batches(one.info, here(one, one.files()))
    with beside(other, other.files()) as found:
        together = analyse_batches(other.info, found)
    assert told(together) == told(alone)
    assert other.notes == one.notes
    assert (one.notes.torn, one.notes.broken_count, one.notes.unknown) == (True, 1, {"of tomorrow": 1})


def test_a_number_of_any_size_is_told_by_both(long_run: Path) -> None:
    more = ViewChanged(t=1.0, node="node-1", facet="memory", value=10**30, since_t=None)
    with (long_run / journal_name(0)).open("ab") as file:
        file.write(msgspec.json.encode(more) + b"\n")
    run = read_run(long_run)
    with beside(run, run.files()) as found:
        assert more in [record for batch in found for record in batch.others]


def test_what_lies_where_the_rig_is_called_is_no_module_of_its_own(
    long_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('this is not the queue that was meant')")
    monkeypatch.chdir(tmp_path)
    run = read_run(long_run)
    with beside(run, run.files()) as found:
        assert sum(len(batch.attempts) for batch in found) > 0


@pytest.mark.parametrize("wrong", ['{"no bucket":1}', '{"99999999999":1}'])
def test_a_process_beside_that_fails_is_not_waited_for(long_run: Path, wrong: str) -> None:
    with (long_run / journal_name(0)).open("ab") as file:
        gaps = b'"gaps":{"count":1,"sketch":%s}' % wrong.encode()
        file.write(b'{"kind":"request_end","t":1,"id":"r","outcome":"completed","started_t":0,"ended_t":1,%s}\n' % gaps)
    run = read_run(long_run)
    with pytest.raises(JournalError, match=r"read .*journal\.jsonl has died"), beside(run, run.files()) as found:
        list(found)


def test_a_file_that_cannot_be_read_ends_both(long_run: Path) -> None:
    path = long_run / journal_name(1)
    path.unlink()
    path.mkdir()
    one, other = read_run(long_run), read_run(long_run)
    with pytest.raises(JournalError, match=r"cannot read .*journal\.1\.jsonl"):
        list(here(one, one.files()))
    with pytest.raises(JournalError, match=r"cannot read .*journal\.1\.jsonl"), beside(other, other.files()) as found:
        list(found)
