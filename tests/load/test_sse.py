from __future__ import annotations

from random import Random

import pytest

from rig.load.sse import Event, SseSplitter


def split(data: bytes, sizes: list[int] | None = None, max_bytes: int = 1024) -> list[Event]:
    splitter, events, at = SseSplitter(max_bytes), list[Event](), 0
    for size in sizes or [len(data)]:
        events += splitter.feed(data[at : at + size])
        at += size
    return events


CASES: list[tuple[bytes, list[Event]]] = [
    (b"data: a\n\n", [("data", b"a")]),
    (b"data:a\n\n", [("data", b"a")]),
    (b"data:  a\n\n", [("data", b" a")]),
    (b"data: a\n\ndata: b\n\n", [("data", b"a"), ("data", b"b")]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [("data", b"a"), ("data", b"b")]),
    (b"data: a\r\rdata: b\r\r", [("data", b"a"), ("data", b"b")]),
    (b"data: a\ndata: b\n\n", [("data", b"a\nb")]),
    (b"data\n\n", [("data", b"")]),
    (b"\n\n\n", []),
    (b": keep-alive\n\n", [("comment", b"keep-alive")]),
    (b":\n\ndata: a\n\n", [("comment", b""), ("data", b"a")]),
    (b": one\n: two\ndata: a\n\n", [("comment", b"one"), ("comment", b"two"), ("data", b"a")]),
    (b"event: error\ndata: {}\n\n", [("error", b"{}")]),
    (b"event: error\ndata: {}\n\ndata: a\n\n", [("error", b"{}"), ("data", b"a")]),
    (b"event: message\nid: 7\nretry: 5\ndata: a\n\n", [("data", b"a")]),
    (b"error: {}\n\ndata: a\n\n", [("error", b"{}"), ("data", b"a")]),
    (b"error\n", [("garbage", b"error")]),
    (b"<html>\n", [("garbage", b"<html>")]),
    (b"\xff\x00x {{{\n\ndata: a\n\n", [("garbage", b"\xff\x00x {{{"), ("data", b"a")]),
    (b"data: a", []),  # without its blank line an event is not given out
    (b"data: a\n", []),
    (b"data: a\n\ndata: b\n", [("data", b"a")]),
    (b"event: x\n\ndata: a\n\n", [("data", b"a")]),
]


@pytest.mark.parametrize(("data", "events"), CASES)
def test_events(data: bytes, events: list[Event]) -> None:
    assert split(data) == events
    assert split(data, [1] * len(data)) == events


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"", []),
        (b"data: a\n\n", []),
        (b"data: a", [("data", b"a")]),
        (b"data: a\r", [("data", b"a")]),
        (b"data: a\ndata: b", [("data", b"a\nb")]),
        (b"event: error\ndata: {}\n", [("error", b"{}")]),
        (b": keep-al", [("comment", b"keep-al")]),
        (b"dat", []),  # a line that was cut off before it said anything
        (b"e", []),
        (b"upstream died", [("garbage", b"upstream died")]),
    ],
)
def test_what_had_begun_is_given_out_at_the_end(data: bytes, events: list[Event]) -> None:
    for step in (1, 100):
        splitter = SseSplitter()
        for at in range(0, len(data), step):
            splitter.feed(data[at : at + step])
        assert splitter.end() == events
        assert splitter.end() == []


def test_any_chunking_gives_the_same_events() -> None:
    data = b"".join(data for data, _ in CASES if data.endswith((b"\n\n", b"\r\r", b"\r\n\r\n"))) * 3
    whole = split(data)
    assert len(whole) > 50
    for seed in range(100):
        rng = Random(seed)
        sizes: list[int] = []
        while sum(sizes) < len(data):
            sizes.append(rng.randint(1, 30))
        assert split(data, sizes) == whole, f"seed {seed}"


def test_an_event_is_given_out_with_its_last_byte() -> None:
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        splitter = SseSplitter()
        data = b"data: a" + end
        given = [bool(splitter.feed(data[at : at + 1])) for at in range(len(data))]
        assert given.index(True) >= len(data) - 2, "not before the blank line"
        assert sum(given) == 1


@pytest.mark.parametrize("step", [1, 100, 5000])
def test_nothing_longer_than_the_bound_is_kept(step: int) -> None:
    for data in (b"data: " + b"x" * 5000, b"data: xxxxxxxxx\n" * 400):
        splitter, events = SseSplitter(max_bytes=1000), list[Event]()
        for at in range(0, len(data), step):
            events += splitter.feed(data[at : at + step])
            held = sum(len(value) for value in vars(splitter).values() if isinstance(value, bytes | bytearray))
            assert held <= 1000 + step
        assert events
        assert all(kind == "garbage" and payload.startswith(b"longer than 1000 bytes") for kind, payload in events[:1])
        assert all(len(payload) < 300 for _, payload in events)
