"""Canaries of a load: which requests are, what they ask, what of their answers is journalled."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from rig.config.workload import Workload
from rig.journal.records import AnswerMalformed, CanaryAnswered, RequestEnded, RequestStarted
from rig.load.answer import Answer
from rig.load.canary import (
    CANARIES,
    LEAST_ASKED,
    MAX_TOKENS,
    MOST_CHARACTERS,
    MOST_TEXTS,
    Asked,
    CanaryTurns,
    Learning,
    Texts,
)
from rig.load.chunks import chunk_of
from rig.load.client import ALONE, LoadDriver
from tests.load.conftest import Recorded
from tests.load.servers import DONE, END, HEAD, Client, chunk, serving, whole


def workload(**values: Any) -> Workload:
    return Workload.model_validate({"name": "t", "models": [{"model": "a"}], "clients": 4, **values})


def asked(turns: CanaryTurns, count: int) -> list[Asked]:
    return [turns.next() for _ in range(count)]


def test_each_combination_is_asked_through_each_entry_node_before_anything_else() -> None:
    turns = CanaryTurns(workload(models=[{"model": "a"}, {"model": "b"}], canaries=0.1), entries=4)
    combinations, never = 2 * 2 * len(CANARIES), Random(0)
    first: list[Asked] = []
    while turns.due(never) and len(first) < 4 * combinations:
        first.append(turns.next())
    ways = Counter((one.canary.name, one.model, one.streamed, one.entry % 4) for one in first)
    assert len(ways) == 4 * combinations
    assert set(ways.values()) == {1}
    assert len({(one.canary.name, one.model, one.streamed) for one in first[: 2 * 4]}) == 2, "one after the other"


def test_from_then_on_a_share_of_the_requests_are() -> None:
    turns, rng = CanaryTurns(workload(canaries=0.25), entries=1), Random(1)
    asked(turns, LEAST_ASKED * 2 * len(CANARIES))
    due = [turns.due(rng) for _ in range(4000)]
    assert sum(due) == pytest.approx(1000, abs=100)


def test_there_is_a_time_for_learning() -> None:
    turns = CanaryTurns(workload(canaries=0.5), entries=1)
    before = asked(turns, 5)
    turns.learnt()
    due = [turns.due(Random(seed)) for seed in range(400)]
    assert sum(due) == pytest.approx(200, abs=40)
    after = asked(turns, 2 * len(CANARIES))
    assert len({(one.canary.name, one.streamed) for one in after}) == 2 * len(CANARIES), "each in turn"
    assert len({(one.canary.name, one.streamed) for one in before}) == 2


def test_without_a_share_there_are_none() -> None:
    turns = CanaryTurns(workload(canaries=0), entries=3)
    assert not any(turns.due(Random(seed)) for seed in range(100))
    assert list(turns.alone()) == []


@pytest.mark.parametrize(("share", "forms"), [(1.0, {True}), (0.0, {False}), (0.5, {True, False})])
def test_forms_are_those_of_the_workload(share: float, forms: set[bool]) -> None:
    turns = CanaryTurns(workload(streamed_share=share), entries=1)
    assert {one.streamed for one in turns.alone()} == forms


def test_modes_are_asked_for() -> None:
    alone = CanaryTurns(workload(canary_modes=["json", "tools"]), entries=1).alone()
    fields = {one.canary.name: one.canary.fields() for one in alone}
    assert fields["json"]["response_format"] == {"type": "json_object"}
    assert fields["tools"]["tools"][0]["function"]["name"] == "weather"
    assert fields["numbers"] == {"temperature": 0, "seed": 0}


def test_texts_are_journalled_once_and_bounded() -> None:
    texts, key = Texts(), ("a", "numbers", True)
    assert texts.new(key, "d", ["one"]) == ["one"]
    assert texts.new(key, "d", ["one"]) == []
    assert texts.new(("b", "numbers", True), "d", ["one"]) == ["one"]
    assert "".join(texts.new(key, "long", ["x" * 5000] * 5)) == "x" * MOST_CHARACTERS
    assert sum(bool(texts.new(key, f"{n}", ["x"])) for n in range(2 * MOST_TEXTS)) == MOST_TEXTS - 2


def answered(*payloads: bytes) -> Answer:
    answer = Answer()
    for payload in payloads:
        chunk = chunk_of(payload)
        assert chunk is not None
        answer.chunk(chunk, payload)
    return answer


def delta(content: str, **more: str) -> bytes:
    rest = "".join(f',"{name}":{value}' for name, value in more.items())
    return b'{"choices":[{"delta":{%s}%s}]}' % (content.encode(), rest.encode())


def test_an_answer_is_its_reasoning_and_its_content_up_to_the_finish_reason() -> None:
    answer = answered(
        delta('"role":"assistant"'),
        delta('"reasoning_content":"so"'),
        delta('"content":"one"'),
        delta('"content":", two"', finish_reason='"stop"'),
        delta('"content":"late"'),
    )
    assert answer.pieces == ["so", "one", ", two"]
    assert answer.malformed("text", "stop", None, 24) == []


def test_a_role_after_the_text() -> None:
    late = answered(delta('"content":"one"'), delta('"role":"assistant","content":"two"'))
    assert late.malformed("text", "stop", None, 24) == ["the role came after the first text"]
    assert answered(delta('"content":"one"')).malformed("text", "stop", None, 24) == [], "some never send one"


def test_a_length_that_is_not_the_one_asked_for() -> None:
    answer = answered(delta('"content":"one"'))
    assert answer.malformed("text", "length", 23, 24) == [
        "ended by its length after 23 tokens, though 24 were asked for"
    ]
    assert answer.malformed("text", "length", 24, 24) == answer.malformed("text", "stop", 3, 24) == []


@pytest.mark.parametrize(("text", "sound"), [('{\\"a\\": 1}', True), ('{\\"a\\"', False), ("", False)])
def test_json_parses(text: str, *, sound: bool) -> None:
    answer = answered(delta(f'"content":"{text}"'))
    assert (answer.malformed("json", "stop", None, 24) == []) is sound
    assert answer.malformed("json", "length", 24, 24) == [], "cut by its length, it cannot"


@pytest.mark.parametrize(("last", "sound"), [('\\"Oslo\\"}', True), ('\\"Oslo', False)])
def test_arguments_of_tools_parse(last: str, *, sound: bool) -> None:
    def call(function: str) -> bytes:
        return delta(f'"tool_calls":[{{"index":0,"function":{{{function}}}}}]')

    answer = answered(
        call('"name":"weather","arguments":""'), call('"arguments":"{\\"city\\": "'), call(f'"arguments":"{last}"')
    )
    assert answer.pieces[0] == "weather"
    assert (answer.malformed("tools", "tool_calls", None, 24) == []) is sound


def piece(name: str, text: str, finish: str = "null") -> bytes:
    body = '{"id":"%s","choices":[{"index":0,"delta":{"role":"assistant","content":"%s"},"finish_reason":%s}]}'
    return chunk(b"data: " + (body % (name, text, finish)).encode() + b"\n\n")


async def test_a_load_asks_them_alone_first_and_journals_their_answers(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        prompt = str(client.request["messages"][0]["content"])
        if client.request["stream"]:
            pieces = b"".join(piece("x", word) for word in prompt.split()[:3])
            await client.send(HEAD + pieces + piece("x", ".", '"stop"') + DONE + END)
        else:
            body = '{"id":"x","choices":[{"message":{"role":"assistant","content":"%s."},"finish_reason":"stop"}]}'
            await client.send(whole((body % "".join(prompt.split()[:3])).encode()))

    async with serving(script) as server:
        load = workload(canaries=1.0, streamed_share=0.5)
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=60, learning=Learning(60.0))
        await driver.run(asyncio.Event())
        requests = server.requests
    starts = [record for record in recorded.records if isinstance(record, RequestStarted)]
    answers = [record for record in recorded.records if isinstance(record, CanaryAnswered)]
    assert len(starts) == len(answers) == 60
    alone = [answer for answer in answers if answer.alone]
    assert [start.id for start in starts[:8]] == [answer.id for answer in alone]
    assert {start.client for start in starts[:8]} == {ALONE}
    assert Counter((answer.canary, answer.streamed) for answer in alone) == Counter(
        (canary.name, streamed) for canary in CANARIES for streamed in (True, False)
    )
    for answer in answers[:8]:
        prompt = next(canary.prompt for canary in CANARIES if canary.name == answer.canary)
        assert "".join(answer.pieces) == "".join(prompt.split()[:3]) + "."
    assert not any(answer.pieces for answer in answers[8:]), "known by then"
    assert len({answer.digest for answer in answers}) == len(CANARIES)
    assert {(request["temperature"], request["seed"], request["max_tokens"]) for request in requests} == {
        (0, 0, MAX_TOKENS)
    }
    assert {start.canary for start in starts} == {canary.name for canary in CANARIES}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (piece("x", "a") + piece("y", "b") + piece("x", "", '"stop"') + DONE, "chunks of two answers: x and y"),
        (piece("x", "a", '"stop"') + piece("x", "", '"length"') + DONE, "a second finish reason: stop, then length"),
        (piece("x", "a", '"stop"') + DONE + piece("x", "b"), "chunks after [DONE]"),
    ],
)
async def test_a_stream_that_is_not_of_one_answer(recorded: Recorded, body: bytes, what: str) -> None:
    """Of any request, canary or not, and however it is framed."""

    async def script(client: Client) -> None:
        await client.send(HEAD + body + END)

    async with serving(script) as server:
        load = workload(canaries=0, streamed_share=1.0)
        await LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=1).run(asyncio.Event())
    (end,) = [record for record in recorded.records if isinstance(record, RequestEnded)]
    (malformed,) = [record for record in recorded.records if isinstance(record, AnswerMalformed)]
    assert end.outcome == "completed"
    assert (malformed.id, malformed.what) == (end.id, [what])
