"""The folder of a run and its `run.json`: what is known before the first record.

`run.json` is written once, atomically, and never changed. A run folder is made once and
never written to by a second run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from rig.errors import JournalError
from rig.visible import redacted_bytes

RUN_FILE: Final = "run.json"
SCHEMA: Final = 2
"""The version of the journal that this rig writes; it reads all before. 1, in which `run.json` names no version: what
code needs to know stood in words (see `rig.journal.earlier`)."""
MAX_SAME_SECOND: Final = 1000


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True):
    fault: int
    kind: str
    aim: str
    hold_s: float
    gap_s: float


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """All durations are as the run used them, that is divided by `pace`."""

    run: str  # the folder's name
    wall_start: float  # Unix seconds at t = 0
    wall_start_iso: str
    rig_version: str
    rig_revision: str | None
    python: str
    seed: int
    duration_s: float
    pace: float
    embedded: bool
    behaviour: str | None  # of the embedded cluster
    inventory: dict[str, Any]  # as used; no key material
    workload: dict[str, Any]
    plan: dict[str, Any]
    schedule: list[PlannedFault]  # the sequence, longer than what will be reached
    expected_faults: int
    target_revisions: dict[str, str | None]  # per node
    pids_allowed: dict[str, list[str]]  # what the first contact named: "pid start command"
    versions: dict[str, str]
    schema: int = SCHEMA


class _Version(msgspec.Struct):
    schema: int = 1


def new_run_folder(results_dir: Path, name: str | None = None) -> Path:
    """Make and return an empty folder for one run under `results_dir` (made as well).

    Without a name it is called after the local time, `20260314-153000`, with `-2`, `-3`… when that is taken.
    A given name that is taken is refused. Raises JournalError.
    """
    if name is not None and (name in {"", ".", ".."} or "/" in name or "\0" in name):
        raise JournalError(f"a run cannot be called {name!r}", remedy="give a plain name without slashes")
    if results_dir.exists() and not results_dir.is_dir():
        raise JournalError(f"cannot make a folder for the run in {results_dir}: it is not a folder")
    try:
        results_dir.mkdir(parents=True, exist_ok=True)
        if name is not None:
            return _make(results_dir / name)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for attempt in range(1, MAX_SAME_SECOND):
            try:
                return _make(results_dir / (stamp if attempt == 1 else f"{stamp}-{attempt}"))
            except FileExistsError:
                continue
    except FileExistsError as error:
        taken = results_dir if name is None else results_dir / name
        raise JournalError(f"{taken} exists already", remedy="choose another name, or move it away") from error
    except OSError as error:
        raise JournalError(f"cannot make a folder for the run in {results_dir}: {error.strerror}") from error
    raise JournalError(f"{MAX_SAME_SECOND} runs called {stamp} in {results_dir}")


def write_run(folder: Path, info: RunInfo) -> Path:
    """Write `run.json` in one piece: all of it is there or nothing. Raises JournalError, also when it exists."""
    path = folder / RUN_FILE
    if path.exists():
        raise JournalError(f"{path} exists already; a run is described once")
    temporary = folder / f".{RUN_FILE}.tmp"
    content = redacted_bytes(msgspec.json.format(msgspec.json.encode(info), indent=1)) + b"\n"
    try:
        with open(temporary, "wb", opener=_for_me_alone) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        _sync_folder(folder)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    return path


def read_info(folder: Path) -> RunInfo:
    """The content of `run.json`. Raises JournalError when it is missing, not what it should be, or of a newer rig."""
    path = folder / RUN_FILE
    try:
        content = path.read_bytes()
        schema = msgspec.json.decode(content, type=_Version).schema
        if schema > SCHEMA:
            what = f"{folder} is of a newer rig: version {schema} of the journal, this rig reads up to {SCHEMA}"
            raise JournalError(what, remedy="update the rig")
        return msgspec.structs.replace(msgspec.json.decode(content, type=RunInfo), schema=schema)
    except FileNotFoundError as error:
        what = "is not the folder of a run: it has no run.json" if folder.is_dir() else "does not exist"
        raise JournalError(f"{folder} {what}", remedy="give a folder under results/") from error
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} is not a run's description: {error}") from error


def _make(folder: Path) -> Path:
    """Readable by its owner alone: the inventory, commands and logs of nodes may hold secrets."""
    folder.mkdir(mode=0o700)
    return folder


def _for_me_alone(path: str, flags: int) -> int:
    """Readable by its owner alone, also where it is copied out of its folder."""
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
