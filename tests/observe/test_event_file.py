"""The file of an event log, as bytes that come in pieces."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from rig.observe.log_reading import digest
from rig.targets.exo.event_file import Piece, Records, parse_piece

EVENTS: list[Any] = [
    {"InstanceDeleted": {"event_id": "e", "instance_id": "é"}},
    None,
    {"ChunkGenerated": {"event_id": "n", "ratio": 1e22, "text": "a\nb"}},
]


def record(event: Any) -> bytes:
    body = msgspec.msgpack.encode(event)
    return len(body).to_bytes(4, "big") + body


def test_the_bytes_of_a_record() -> None:
    """Length in four bytes, big-endian, then msgpack: a map of one pair."""
    assert list(Records().feed(b"\x00\x00\x00\x07\x81\xa1A\x81\xa1b")) == []
    assert list(Records().feed(b"\x00\x00\x00\x07\x81\xa1A\x81\xa1b\x07")) == [b'{"A":{"b":7}}']


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_entries_come_whole_however_the_bytes_come(step: int) -> None:
    data = b"".join(map(record, EVENTS))
    records = Records()
    found = [entry for at in range(0, len(data), step) for entry in records.feed(data[at : at + step])]
    assert [json.loads(entry) for entry in found] == EVENTS
    assert list(records.feed(b"")) == []


def test_an_entry_of_the_file_is_that_of_the_api() -> None:
    for event, entry in zip(EVENTS, Records().feed(b"".join(map(record, EVENTS))), strict=True):
        assert digest(entry) == digest(json.dumps(event, indent=1).encode())
    assert digest(b'{"a": 1}') != digest(b'{"a": 2}')


@pytest.mark.parametrize("data", [b"\0\0\0\0", b"\xff\xff\xff\xffx", b"\0\0\0\2\xc1\xc1", b"\0\0\0\2\x07\x07"])
def test_what_is_no_event_log_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a record"):
        list(Records().feed(data))


def test_what_the_script_says() -> None:
    said = f"path=/a b\ninode=7\nsize=12\nhead={base64.b64encode(b'he').decode()}\ndata\n"
    assert parse_piece(f"{said}{base64.b64encode(b'x' * 90).decode()}\n") == Piece("/a b", "7", 12, b"he", b"x" * 90)
    assert parse_piece(f"{said}\n") == Piece("/a b", "7", 12, b"he", b"")
    assert parse_piece("") is None
    for bad in ("nonsense", said.replace("size=12", "size=x"), said.replace("inode=7\n", ""), f"{said}x"):
        with pytest.raises(ValueError):  # noqa: PT011 (each says what it found)
            parse_piece(bad)
