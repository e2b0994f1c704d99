"""The quick ways through a body give exactly what the plain ones give: random bodies, read in many ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from rig.load.http1 import ResponseParser
from rig.load.stream import StreamReader

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
TOKEN = b'data: {"id":"x","choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
EVENTS = (
    TOKEN,
    b'data: {"id":"x","choices":[{"delta":{"role":"assistant","content":""}}]}\n\n',
    b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n',
    b'data:{"choices":[{"text":"b"}]}\n\n',
    b'data: {"id":"y","choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}\n\n',
    b'data: {"choices":[],"usage":{"completion_tokens":7}}\n\n',
    b'data: {"error":{"message":"runner died"}}\n\n',
    b'event: error\ndata: {"message":"no"}\n\n',
    b": keep-alive\n\n",
    b': prefill_progress {"processed_tokens": 4}\n\n',
    b'data: {"choices":\ndata: [{"delta":{"content":"a"}}]}\n\n',
    b'data: {"choices":\n[{"delta":{"content":"a"}}]}\n\n',  # its second line is garbage
    b'data: {"a":[{}\n\ndata: {}]},{}\n\n',  # two halves that would make whole values together
    b'data: {"a":"\n\ndata: "}\n\n',
    b"data: {},{}\n\n",
    b"data: {} {}\n\n",
    b"data: 5\n\n",
    b"data: \n\n",
    b"data: null\n\n",
    b"data: {broken\n\n",
    b"data: \xff\xfe\n\n",
    b'data: {"id":"\xff"}\n\n',
    b"data: {}\n\n\n",
    b"data: {}\r\n\r\n",
    b'data: {"x":"\r"}\n\n',
    DONE,
    DONE + TOKEN,
    b"<html>\n",
    b"data",
)


def body_of(rng: Random) -> list[bytes]:
    """Mostly tokens, as in life, so that the quick way is taken, and something odd in most of them."""
    events = [TOKEN] * rng.randint(1, 12)
    for _ in range(rng.randint(0, 3)):
        events.insert(rng.randint(0, len(events)), rng.choice(EVENTS))
    return [*events, DONE] if rng.random() < 0.5 else events


def heard(reads: Sequence[tuple[bytes, Sequence[bytes]]]) -> dict[str, Any]:
    reader = StreamReader()
    for data, pieces in reads:
        reader.feed(pieces or [data], [1.0] * max(len(pieces), 1))
    return asdict(reader.heard) | {"gaps": reader.gaps().count, "last": reader.last_progress_t}


@pytest.mark.parametrize("seed", range(20))
def test_a_body_means_the_same_however_it_is_read(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        events = body_of(rng)
        body = b"".join(events)
        plain = heard([(body[at : at + 1], ()) for at in range(len(body))])
        assert heard([(body, ())]) == plain, body
        assert heard([(body, events)]) == plain, body
        assert heard([(event, [event]) for event in events]) == plain, body
        cuts = [0, *sorted(rng.sample(range(len(body)), min(3, len(body)))), len(body)]
        odd = [body[start:end] for start, end in pairwise(cuts)]
        assert heard([(body, odd)]) == plain, (body, odd)
        assert heard([(piece, ()) for piece in odd]) == plain, (body, odd)


@pytest.mark.parametrize("seed", range(20))
def test_each_piece_keeps_the_time_at_which_it_came_in_however_many_are_read_at_once(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        events = body_of(rng)
        times = [float(t) for t in sorted(rng.choices(range(6), k=len(events)))]
        readers = StreamReader(), StreamReader()
        for event, t in zip(events, times, strict=True):
            readers[0].feed([event], [t])
        cuts = [0, *sorted(rng.sample(range(len(events)), min(2, len(events)))), len(events)]
        for start, end in pairwise(cuts):
            if start < end:
                readers[1].feed(events[start:end], times[start:end])
        one, several = ((each.heard, each.gaps(), each.first_token_t, each.last_token_t) for each in readers)
        assert one == several, (events, times)


@pytest.mark.parametrize("seed", range(20))
def test_chunks_are_the_same_however_they_arrive(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        chunks = [rng.choice((b"a" * rng.randint(1, 40), b"x\r\ny", b"\r\n", b"3\r\nabc\r\n")) for _ in range(9)]
        sent = HEAD + b"".join(b"%x%s\r\n%s\r\n" % (len(each), rng.choice((b"", b";n=v")), each) for each in chunks)
        sent = rng.choice((sent + b"0\r\n\r\n", sent + b"0\r\nx: y\r\n\r\n", sent, sent + b"zz\r\n", sent + b"4\r\nab"))
        step = rng.choice((len(sent), 1, 2, 7, 64))
        found: list[tuple[bytes, bool, bool]] = []
        for size in (step, 1):
            parser, got = ResponseParser(), b""
            for at in range(0, len(sent), size):
                got += b"".join(parser.feed(sent[at : at + size]))
            found.append((got, parser.complete, parser.failure is not None))
        assert found[0] == found[1], sent


@pytest.mark.parametrize("seed", range(20))
def test_arrivals_are_read_in_one_go_only_where_each_is_one_whole_chunk(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        bodies = [rng.choice((b"a" * rng.randint(1, 40), b"x\r\ny", b"\r\n", b"3\r\nabc\r\n")) for _ in range(4)]
        arrivals = [b"%x\r\n%s\r\n" % (len(each), each) for each in bodies]
        moved = rng.random() < 0.5
        if moved:  # a border between two of them
            at, cut = rng.randrange(3), rng.randint(1, 3)
            arrivals[at], arrivals[at + 1] = arrivals[at] + arrivals[at + 1][:cut], arrivals[at + 1][cut:]
        one, several = ResponseParser(), ResponseParser()
        for parser in (one, several):
            parser.feed(HEAD + b"".join(b"%x\r\n%s\r\n" % (n, b"a" * n) for n in range(1, 41)))
        pieces = several.one_chunk_each(arrivals)
        apart = [one.feed(each) for each in arrivals]
        assert pieces is None or [[piece] for piece in pieces] == apart, arrivals
        assert pieces is not None or moved or any(b"\r\n" in each for each in bodies), arrivals
        assert pieces is not None or [several.feed(each) for each in arrivals] == apart, "nothing was read"


def test_tokens_of_one_read_have_no_gap_between_them() -> None:
    reader = StreamReader()
    reader.feed([TOKEN] * 3, [1.0] * 3)
    reader.feed([TOKEN] * 4, [1.5] * 4)
    gaps = reader.gaps()
    assert (gaps.count, gaps.sum_s, gaps.max_s) == (6, 0.5, 0.5)
    assert sorted(gaps.sketch.values()) == [1, 5]
    assert (reader.first_token_t, reader.last_token_t) == (1.0, 1.5)
