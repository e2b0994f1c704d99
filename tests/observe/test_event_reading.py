"""A long event log in a file on a node, read over real SSH: on from where it was, bounded, and begun anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rig.journal.records import EventLogRead, EventSeen, Finding
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.upload import upload
from rig.observe.events import EventLogs, OpenFile
from rig.observe.log_reading import KnownLog, LogReading
from rig.targets.exo.api import Exo
from rig.targets.exo.event_file import PIECE_BYTES, Records
from rig.targets.target import Piece
from tests.nodes.servers import SshServer
from tests.observe.api import Api
from tests.observe.conftest import Written

FILLING = "x" * 1000


def record(event: Any) -> bytes:
    body = msgspec.msgpack.encode(event)
    return len(body).to_bytes(4, "big") + body


def deleted(number: int, life: str = "") -> bytes:
    return record({"InstanceDeleted": {"event_id": f"{life}{number}", "instance_id": f"i{number}"}})


def noise(count: int) -> bytes:
    return record({"ChunkGenerated": {"text": FILLING}}) * count


def written_out(file: Path, data: bytes, mode: str = "wb") -> int:
    """How long the file is now."""
    with file.open(mode) as opened:
        opened.write(data)
        return opened.tell()


def archive(file: Path) -> None:
    file.rename(file.with_suffix(".old"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    server = SshServer(tmp_path / "ssh")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "exo" / "event_log" / "api" / "events.bin"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
async def nodes(server: SshServer, tmp_path: Path) -> AsyncIterator[ShellNodes]:
    node = server.node()
    home = node.process.model_copy(update={"home": str(tmp_path / "exo")})
    async with open_nodes(server.inventory(a=node.model_copy(update={"process": home}))) as nodes:
        await upload(nodes["a"])
        yield nodes


def seen(written: Written) -> list[tuple[int, Any]]:
    return [(r.index, r.data.get("instance")) for r in written.records if isinstance(r, EventSeen)]


def ends(written: Written) -> list[tuple[int, str | None]]:
    return [(r.count, r.source) for r in written.records if isinstance(r, EventLogRead)]


def findings(written: Written) -> list[tuple[str, str]]:
    return [(r.code, r.text) for r in written.records if isinstance(r, Finding)]


def test_a_file_that_grows_while_it_is_read_leaves_nothing_behind() -> None:
    """Its size was taken before its bytes."""
    piece = Piece("/f", "7", 10, b"", noise(1))
    file = OpenFile(piece, LogReading(KnownLog()), Records())
    assert file.behind(piece) == 10
    assert len(list(file.take(piece))) == 1
    assert file.behind(piece) == 0


async def test_it_is_read_on_from_where_it_was(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes, file: Path
) -> None:
    logs = EventLogs(exo, written.journal, connections=nodes)
    torn = deleted(9)
    written_out(file, deleted(0) + noise(2500) + deleted(1) + torn[:7])  # in three pieces, its end not written out yet
    await logs.read("a", api.url)
    assert ends(written) == [(2502, "file")]
    written_out(file, torn[7:] + noise(1), mode="ab")
    await logs.read("a", api.url)
    assert seen(written) == [(0, "i0"), (2501, "i1"), (2502, "i9")]
    assert ends(written)[1:] == [(2504, "file")]
    assert findings(written) == []
    assert api.count("/events") == 2  # asked for, so that the node writes its buffer out; not read


async def test_what_is_beyond_the_limit_is_left_for_the_next_time(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes, file: Path
) -> None:
    logs = EventLogs(exo, written.journal, connections=nodes, limit_bytes=PIECE_BYTES)
    left = written_out(file, noise(1500) + deleted(1)) - PIECE_BYTES
    await logs.read("a", api.url)
    assert findings(written) == [("event-log-unread", f"{left} bytes of its file are left for later")]
    assert seen(written) == []
    await logs.read("a", api.url)
    assert seen(written) == [(1500, "i1")]
    assert ends(written)[-1] == (1501, "file")
    assert len(findings(written)) == 1


@pytest.mark.parametrize("longer", [False, True])
async def test_a_file_that_was_begun_anew(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes, file: Path, *, longer: bool
) -> None:
    """In the same inode or in another, shorter than the old one or longer."""
    logs = EventLogs(exo, written.journal, connections=nodes)
    written_out(file, deleted(0) + noise(3))
    await logs.read("a", api.url)
    for life in ("second", "third"):
        written_out(file, deleted(7, life) + noise(9 if longer else 1))
        await logs.read("a", api.url)
        archive(file)
    sessions = [record.session for record in written.records if isinstance(record, EventLogRead)]
    assert len(set(sessions)) == 3
    assert seen(written) == [(0, "i0"), (0, "i7"), (0, "i7")]


async def test_without_the_file_the_api_is_asked(api: Api, exo: Exo, written: Written, nodes: ShellNodes) -> None:
    logs = EventLogs(exo, written.journal, connections=nodes)
    await logs.read("a", api.url)
    assert [source for _, source in ends(written)] == ["api"]
    assert seen(written)


async def test_a_log_that_is_too_dear_to_ask_for_is_said_to_be_unread(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes
) -> None:
    logs = EventLogs(exo, written.journal, connections=nodes)
    await logs.read("a", api.url, most_events=10, known_events=11)
    assert [code for code, _ in findings(written)] == ["event-log-unread"]
    assert ends(written) == []


async def test_a_node_that_does_not_answer_may_hold_entries_back(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes, file: Path
) -> None:
    await api.stop()
    written_out(file, deleted(0))
    await EventLogs(exo, written.journal, connections=nodes).read("a", api.url)
    assert seen(written) == [(0, "i0")]
    assert [code for code, _ in findings(written)] == ["event-log-unread"]


async def test_a_file_of_something_else_is_found_and_the_api_asked(
    api: Api, exo: Exo, written: Written, nodes: ShellNodes, file: Path
) -> None:
    written_out(file, b"\xff" * 100)
    await EventLogs(exo, written.journal, connections=nodes).read("a", api.url)
    assert [code for code, _ in findings(written)] == ["event-not-understood"]
    assert [source for _, source in ends(written)] == ["api"]
