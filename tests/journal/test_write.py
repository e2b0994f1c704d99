from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rig.clock import RunClock
from rig.errors import JournalError
from rig.journal.records import AnyRecord, Finding, Own, PhaseStarted, RequestEnded
from rig.journal.write import Journal, journal_name

FULL = Path("/dev/full")


def _phase(t: float) -> PhaseStarted:
    return PhaseStarted(t=t, phase="baseline")


def _lines(folder: Path, number: int = 0) -> list[bytes]:
    return (folder / journal_name(number)).read_bytes().splitlines(keepends=True)


def _write_many(journal: Journal) -> None:
    for number in range(100):
        journal.write(_phase(float(number)))


def test_a_record_is_on_disk_when_the_listeners_hear_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RunClock())
    seen: list[int] = []
    unsubscribe = journal.subscribe(lambda _: seen.append(len(_lines(tmp_path))))
    journal.write(_phase(1.0))
    journal.write(_phase(2.0))
    unsubscribe()
    journal.write(_phase(3.0))
    journal.close()
    assert seen == [1, 2]
    assert [msgspec.json.decode(line)["t"] for line in _lines(tmp_path)] == [1.0, 2.0, 3.0]


def test_it_refuses_a_folder_with_a_journal(tmp_path: Path) -> None:
    Journal(tmp_path, RunClock()).close()
    with pytest.raises(JournalError, match=r"cannot make journal\.jsonl"):
        Journal(tmp_path, RunClock())


def test_files_rotate_between_records_and_stop_at_their_bound(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RunClock(), rotate_bytes=120, max_files=3)
    with pytest.raises(JournalError, match="3 files"):
        _write_many(journal)
    assert journal.failed
    files = [_lines(tmp_path, number) for number in range(3)]
    assert all(sum(map(len, lines)) <= 120 for lines in files)
    times = [msgspec.json.decode(line)["t"] for lines in files for line in lines]
    assert times == [float(number) for number in range(len(times))]
    assert not (tmp_path / journal_name(3)).exists()


def test_a_listener_that_raises_is_dropped_and_told_of_at_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RunClock())
    heard: list[AnyRecord] = []

    def bad(_: AnyRecord) -> None:
        raise RuntimeError("no")

    journal.subscribe(bad)
    journal.subscribe(heard.append)
    journal.write(_phase(1.0))
    journal.write(_phase(2.0))
    assert isinstance(journal.listener_error, RuntimeError)
    assert [type(record) for record in heard] == [PhaseStarted, Finding, PhaseStarted]
    assert len(_lines(tmp_path)) == 3
    with pytest.raises(JournalError, match="listener"):
        journal.close()
    journal.close()


def test_listeners_hear_records_in_the_order_of_writing_even_when_one_writes(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RunClock())
    heard: list[float] = []

    def echo(record: AnyRecord) -> None:
        if record.t < 3.0:
            journal.write(_phase(record.t + 1.0))

    journal.subscribe(echo)
    journal.subscribe(lambda record: heard.append(record.t))
    journal.write(_phase(1.0))
    journal.close()
    assert heard == [1.0, 2.0, 3.0]


def test_text_that_is_no_text_is_kept_legibly(tmp_path: Path) -> None:
    journal = Journal(tmp_path, RunClock())
    evidence = b"\xff ok".decode("utf-8", "surrogateescape")
    journal.write(RequestEnded(t=1.0, id="a", outcome="error", started_t=0.0, ended_t=1.0, evidence=evidence))
    journal.close()
    assert msgspec.json.decode(_lines(tmp_path)[0])["evidence"] == "\\udcff ok"


@pytest.fixture
def small_disk() -> Iterator[int]:
    """No file of this process may grow over 1000 bytes: writes come back short, then fail, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_short_write_ends_in_an_error_and_nothing_is_written_after_it(tmp_path: Path, small_disk: int) -> None:
    journal = Journal(tmp_path, RunClock())
    heard: list[AnyRecord] = []
    journal.subscribe(heard.append)
    with pytest.raises(JournalError, match="cannot write: File too large"):
        _write_many(journal)
    assert journal.failed
    size = (tmp_path / journal_name(0)).stat().st_size
    assert size == small_disk
    with pytest.raises(JournalError, match="has failed"):
        journal.write(_phase(0.0))
    assert (tmp_path / journal_name(0)).stat().st_size == size
    assert len(heard) == len([line for line in _lines(tmp_path) if line.endswith(b"\n")])


if FULL.exists():  # Linux has it

    def test_a_full_disk_is_one_error_that_says_so(tmp_path: Path) -> None:
        journal = Journal(tmp_path, RunClock())
        full = os.open(FULL, os.O_WRONLY)
        os.dup2(full, _descriptor(tmp_path / journal_name(0)))
        os.close(full)
        with pytest.raises(JournalError, match="No space left on device"):
            journal.write(_phase(1.0))
        assert journal.failed


def _descriptor(path: Path) -> int:
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == str(path):
                return int(name)
        except FileNotFoundError:
            continue
    raise AssertionError(f"{path} is not open")


WRITER = """
import sys
from pathlib import Path
from rig.clock import RunClock
from rig.journal.records import Own
from rig.journal.write import Journal
journal = Journal(Path(sys.argv[1]), RunClock(), rotate_bytes=20_000)
number = 0
while True:
    t = float(number)
    journal.write(Own(t=t, interval_s=1, lag_max_s=0, cpu_percent=0, rss_bytes=1, open_files=0, wall_drift_s=0))
    number += 1
    if number % 50 == 0:
        print(number, flush=True)
"""


@pytest.mark.processes
def test_a_writer_killed_at_any_moment_leaves_every_line_that_it_reported(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "run")], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    reported = 0
    while reported < 1000:
        line = writer.stdout.readline()
        assert line, "the writer ended by itself"
        reported = int(line)
    writer.kill()
    reported = max([reported, *(int(line) for line in writer.stdout.read().split())])
    writer.wait()
    writer.stdout.close()
    assert (tmp_path / "run" / journal_name(1)).exists()
    records: list[float] = []
    number = 0
    while (tmp_path / "run" / journal_name(number)).exists():
        lines = _lines(tmp_path / "run", number)
        records += [msgspec.json.decode(line, type=Own).t for line in lines if line.endswith(b"\n")]
        number += 1
    assert len(records) >= reported
    assert records == [float(number) for number in range(len(records))]
