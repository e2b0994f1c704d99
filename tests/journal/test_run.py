from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from rig.errors import JournalError
from rig.journal.run import RUN_FILE, SCHEMA, RunInfo, new_run_folder, read_info, write_run


def test_what_is_written_is_read_back_and_no_temporary_file_stays(tmp_path: Path, info: RunInfo) -> None:
    path = write_run(tmp_path, info)
    assert read_info(tmp_path) == info
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_description_without_a_version_is_of_the_first(tmp_path: Path, info: RunInfo) -> None:
    written = json.loads(write_run(tmp_path, info).read_text())
    assert written.pop("schema") == SCHEMA
    (tmp_path / RUN_FILE).write_text(json.dumps(written))
    assert read_info(tmp_path) == msgspec.structs.replace(info, schema=1)


def test_a_newer_version_is_refused_whatever_else_it_says(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text(json.dumps({"schema": SCHEMA + 1, "run": ["of another type"]}))
    with pytest.raises(JournalError, match=f"of a newer rig: version {SCHEMA + 1} of the journal") as refused:
        read_info(tmp_path)
    assert refused.value.remedy == "update the rig"


def test_a_run_is_described_once(tmp_path: Path, info: RunInfo) -> None:
    write_run(tmp_path, info)
    with pytest.raises(JournalError, match="exists already"):
        write_run(tmp_path, info)


def test_a_folder_that_is_gone_is_said(tmp_path: Path, info: RunInfo) -> None:
    with pytest.raises(JournalError, match="cannot write"):
        write_run(tmp_path / "gone", info)


def test_folders_without_a_name_never_collide(tmp_path: Path) -> None:
    folders = [new_run_folder(tmp_path / "results") for _ in range(5)]
    assert len(set(folders)) == 5
    assert all(folder.is_dir() for folder in folders)


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    assert new_run_folder(tmp_path, "night").name == "night"
    with pytest.raises(JournalError, match=r"night exists already"):
        new_run_folder(tmp_path, "night")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b"])
def test_a_name_must_be_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(JournalError, match="cannot be called"):
        new_run_folder(tmp_path, name)


def test_results_that_are_a_file_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(JournalError):
        new_run_folder(tmp_path / "results")
    with pytest.raises(JournalError):
        new_run_folder(tmp_path / "results" / "deeper")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not a run's description"),
        (b"[]", "not a run's description"),
        (b'{"run": "x"}', "missing required field"),
    ],
)
def test_a_description_that_is_none_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(JournalError, match=message):
        read_info(tmp_path)


def test_a_folder_without_one_is_told_from_no_folder(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"it has no run\.json"):
        read_info(tmp_path)
    with pytest.raises(JournalError, match="does not exist"):
        read_info(tmp_path / "gone")
