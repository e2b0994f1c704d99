"""A running cluster for the commands, and answers of the real command line to many inputs, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import yaml

from tests.analysis.generate import Shape, info_of, records_of, write_journal
from tests.cli.bad_inputs import Bad
from tests.soak.lane import PATIENCE_S, Lane, end_lane, rig, start_lane

AT_A_TIME = 4


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    lane = start_lane(tmp_path_factory.mktemp("cluster") / "lane")
    yield lane
    end_lane(lane)


@dataclass(frozen=True)
class Workplace:
    """What bad inputs may name: `{nodes}` a good inventory of running nodes, `{garbage}` a run with a broken journal,
    `{full}` a folder on a full disk, `{locked}` a RIG_DIR that another rig has locked, `{other_key}` a key of nobody.
    """

    nodes: str
    garbage: str
    full: str
    locked: str
    other_key: str

    def fill(self, text: str) -> str:
        for name, value in vars(self).items():
            text = text.replace(f"{{{name}}}", value)
        return text


@pytest.fixture(scope="module")
def workplace(lane: Lane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    folder = tmp_path_factory.mktemp("workplace")
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType] (untyped keywords)
    (folder / "other_key").write_bytes(key.export_private_key())
    (folder / "other_key").chmod(0o600)
    locked = folder / "locked"
    locked.mkdir()
    (locked / "lock").write_text("version=1\nowner=eve@elsewhere:7\nrun=theirs\ntoken=abc\nboot_id=none\n")
    shape = Shape(seed=3)
    garbage = write_journal(folder / "garbage", info_of(shape, run="garbage"), records_of(shape))
    lines = (garbage / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (garbage / "journal.jsonl").write_bytes(
        b"".join([*lines[:50], b"\x00\xff garbage\n", b'{"kind":"phase"}\n', *lines[50:]])
    )
    full = folder / "full"
    full.mkdir()
    mounted = can_mount()
    if mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=1", "tmpfs", full], check=True)
    yield Workplace(lane.inventory, str(garbage), str(full), str(locked), str(folder / "other_key"))
    if mounted:
        subprocess.run(["umount", full], check=True)


def alone(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python itself, with what the tests have."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )


def can_mount() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


class Answers:
    """`to(bad)` waits for the answer to one input; all that are to be tested were begun at the start."""

    def __init__(self, folder: Path, workplace: Workplace, bads: list[Bad], pool: ThreadPoolExecutor) -> None:
        self._folder = folder
        self._workplace = workplace
        self._given: dict[str, Future[subprocess.CompletedProcess[str]]] = {
            bad.name: pool.submit(self._ask, bad) for bad in bads
        }

    def folder(self, bad: Bad) -> Path:
        return self._folder / bad.name

    def _ask(self, bad: Bad) -> subprocess.CompletedProcess[str]:
        folder = self.folder(bad)
        folder.mkdir()
        for name, content in bad.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            path.chmod(0o600)
        if bad.doctor is not None:
            inventory: dict[str, Any] = yaml.safe_load(Path(self._workplace.nodes).read_text())
            for name, node in inventory["nodes"].items():
                node["rig_dir"] = str(folder / name)  # its own locks
            bad.doctor(inventory)
            text: str = yaml.safe_dump(inventory)  # pyright: ignore[reportUnknownMemberType]
            (folder / "nodes.yaml").write_text(self._workplace.fill(text))
        arguments = [self._workplace.fill(argument) for argument in bad.arguments]
        return rig(*arguments, cwd=folder, environment={"XDG_RUNTIME_DIR": str(folder)})

    def to(self, bad: Bad) -> subprocess.CompletedProcess[str]:
        return self._given[bad.name].result()


@pytest.fixture(scope="module")
def answers(
    request: pytest.FixtureRequest, workplace: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Answers]:
    params = [getattr(item, "callspec").params for item in request.session.items if hasattr(item, "callspec")]  # noqa: B009
    chosen: dict[Bad, None] = {each["bad"]: None for each in params if isinstance(each.get("bad"), Bad)}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield Answers(tmp_path_factory.mktemp("bad"), workplace, list(chosen), pool)
        pool.shutdown(cancel_futures=True)
