from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rig.targets.exo.array import ArraySplitter
from tests.observe.api import DATA

AWKWARD: list[dict[str, Any]] = [
    {},
    {"text": '},{"a":1}, [{"}]'},
    {"text": 'quote \\" }, { '},
    {"list": [{"a": 1}, {"b": [{"c": 2}, {}]}]},
    {"deep": {"er": [[{}], [{}, {}]]}},
]


def _split(body: bytes, cuts: list[int]) -> tuple[list[Any], bool]:
    splitter = ArraySplitter()
    elements: list[Any] = []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        elements += [json.loads(element) for element in splitter.feed(body[start:end])]
    return elements, splitter.finished


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " :\t")])
def test_any_array_cut_anywhere(separators: tuple[str, str]) -> None:
    dice = random.Random(5)
    for _ in range(200):
        wanted = dice.choices(AWKWARD, k=dice.randrange(6))
        body = json.dumps(wanted, separators=separators).encode()
        cuts = sorted(dice.randrange(len(body) + 1) for _ in range(dice.randrange(8)))
        assert _split(body, cuts) == (wanted, True)


def test_one_byte_at_a_time() -> None:
    body = json.dumps(AWKWARD, indent=1).encode() + b"\n"
    assert _split(body, list(range(1, len(body)))) == (AWKWARD, True)


def test_captured_events() -> None:
    body = (DATA / "events.json").read_bytes()
    assert _split(body, list(range(700, len(body), 700))) == (json.loads(body), True)


def test_a_cut_array_yields_what_was_whole_and_is_not_finished() -> None:
    body = json.dumps(AWKWARD).encode()
    for length in range(len(body)):
        elements, finished = _split(body[:length], [])
        assert elements == AWKWARD[: len(elements)]
        assert not finished


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(ValueError, match="no JSON array"):
        list(ArraySplitter().feed(b' {"a": 1}'))


def test_an_element_without_end_is_refused_not_kept() -> None:
    splitter = ArraySplitter(max_element_bytes=1000)
    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        list(splitter.feed(b'[{"a": "' + b"x" * 2000))
