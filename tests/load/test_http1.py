from __future__ import annotations

import pytest

from rig.load.http1 import ResponseParser

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def parse(data: bytes, step: int) -> tuple[ResponseParser, bytes]:
    parser, body = ResponseParser(), b""
    for at in range(0, len(data), step):
        body += b"".join(parser.feed(data[at : at + step]))
    return parser, body


@pytest.mark.parametrize("step", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(
    ("data", "status", "body", "complete", "proper"),
    [
        (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, b"abcde", True, True),
        (CHUNKED + b"3\r\nabc\r\n0\r\nx: y\r\n\r\n", 200, b"abc", True, True),
        (CHUNKED + b"3;name=value\r\nabc\r\n0\r\n\r\n", 200, b"abc", True, True),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n", 200, b"0123456789", True, True),
        (CHUNKED + b"3\r\nabc\r\n", 200, b"abc", False, False),
        (CHUNKED + b"3\r\nab", 200, b"ab", False, False),
        (CHUNKED + b"3\r\nabc\r\n0\r\n", 200, b"abc", False, False),
        (CHUNKED, 200, b"", False, False),
        (CHUNKED + b"0\r\n\r\n", 200, b"", True, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, b"abc", True, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcdef", 200, b"abc", True, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", 200, b"ab", False, False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, b"", True, True),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", 200, b"abc", False, True),  # the connection's end ends it
        (b"HTTP/1.1 404 \r\ncontent-length: 2\r\n\r\nno", 404, b"no", True, True),
        (b"HTTP/1.1 404\r\ncontent-length: 2\r\n\r\nno", 404, b"no", True, True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"1\r\na\r\n0\r\n\r\n", 200, b"a", True, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True, True),
        (b"HTTP/1.1 200 OK\ncontent-length: 3\n\nabc", 200, b"abc", True, True),  # bare line feeds
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\n\r\nabc", 200, b"abc", True, True),
        (b"HTTP/1.1 200 OK\n\n\r\n\r\nabc", 200, b"\r\n\r\nabc", False, True),  # the first blank line ends it
        (b"HTTP/1.1 100 Continue\n\n" + CHUNKED + b"1\na\n0\n\n", 200, b"a", True, True),
        (b"HTTP/1.1 200", None, b"", False, False),
        (b"", None, b"", False, False),
    ],
)
def test_responses(step: int, data: bytes, status: int | None, body: bytes, complete: bool, proper: bool) -> None:  # noqa: FBT001 (parameters of the test)
    parser, found = parse(data, step)
    assert (parser.status, found, parser.complete, parser.at_end()) == (status, body, complete, proper)
    assert parser.failure is None


@pytest.mark.parametrize("step", [1, 5, 10_000])
@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"\x01\x02\xff\xfe garbage not http\r\n\r\n", b""),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b""),
        (b"HTTP/2 200\r\n\r\n", b""),
        (b"HTTP/1.1 abc OK\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\n", b""),
        (CHUNKED + b"3\r\nabcd\r\n", b"abc"),
        (CHUNKED + b"3\r\nabc\r\nzz\r\n", b"abc"),
        (CHUNKED + b"3\r\nabc\r\n\r\n", b"abc"),
        (CHUNKED + b"3\r\nabc\r\n-1\r\n", b"abc"),
        (CHUNKED + b"1_0\r\n", b""),
        (CHUNKED + b"5" * 5000, b""),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, b""),
    ],
)
def test_what_is_no_http_is_said_and_what_came_before_it_counts(step: int, data: bytes, body: bytes) -> None:
    parser, found = parse(data, step)
    assert parser.failure is not None
    assert found == body
    assert not parser.complete
    assert parser.feed(b"3\r\nabc\r\n") == []
