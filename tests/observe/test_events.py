from __future__ import annotations

import json
from typing import Any

import pytest

from rig.journal.records import EventSeen, Finding, InstanceServed
from rig.observe.events import SERVED_AT_ONCE, EventLogs
from rig.observe.log_reading import KnownLog, LogReading, digest
from rig.targets.exo import events
from rig.targets.exo.api import Exo
from rig.targets.target import NotUnderstood, Reported, ServedBy, TargetEvent
from tests.observe.api import DATA, Api
from tests.observe.conftest import Written


def _created(number: int) -> dict[str, Any]:
    return {"InstanceDeleted": {"event_id": f"e{number}", "instance_id": f"i{number}"}}


def _request(number: int) -> dict[str, Any]:
    task = {"task_id": f"t{number}", "instance_id": "i1", "command_id": f"c{number}"}
    return {"TaskCreated": {"event_id": f"q{number}", "task_id": f"t{number}", "task": {"TextGeneration": task}}}


def _noise(number: int) -> dict[str, Any]:
    return {"ChunkGenerated": {"event_id": f"n{number}", "text": '},{"InstanceCreated"'}}


def _seen(written: Written) -> list[tuple[str, str, int, Any]]:
    return [
        (record.node, record.session, record.index, record.data.get("instance"))
        for record in written.records
        if isinstance(record, EventSeen)
    ]


@pytest.fixture
def logs(exo: Exo, written: Written) -> EventLogs:
    return EventLogs(exo, written.journal, connections={})


def test_captured_events_are_told_in_canonical_form() -> None:
    entries = [json.dumps(event).encode() for event in json.loads((DATA / "events.json").read_bytes())]
    told = [event for entry in entries if isinstance(event := events.parse(entry), TargetEvent)]
    assert {event.name for event in told} == {
        "DeploymentPlaced",
        "DeploymentPlacementFailed",
        "DeploymentDeleted",
        "DeploymentCreated",
        "InstanceCreated",
        "RunnerStatusUpdated",
    }
    instance = next(event for event in told if event.name == "InstanceCreated")
    assert instance.data["instance"] == "b75a9f83-b8e7-4480-926a-ca9ec6c62641"
    assert (instance.data["model"], instance.data["port"], len(instance.data["runners"])) == ("lab/tiny-b", 52777, 2)
    failed = next(event for event in told if event.name == "DeploymentPlacementFailed")
    assert failed.data == {
        "deployment": "36ee05b9-49bb-4302-9659-453b7eb24efe",
        "error": "No cycles found with sufficient memory",
    }
    created = next(event for event in told if event.name == "DeploymentCreated")
    assert (created.data["model"], created.data["min_nodes"]) == ("lab/tiny-b", 2)


def test_a_request_tells_its_instance_and_other_tasks_nothing() -> None:
    assert events.parse(json.dumps(_request(1)).encode()) == ServedBy("c1", "i1")
    warmup = {"TaskCreated": {"task": {"StartWarmup": {"instance_id": "i1", "command_id": "c"}}}}
    assert events.parse(json.dumps(warmup).encode()) is None


@pytest.mark.parametrize("entry", [b"{}", b"7", b"[]", b"null", b'{"Somethi', b'{"InstanceLinkCreated": {"link": {}}}'])
def test_foreign_entries_tell_nothing(entry: bytes) -> None:
    event = events.parse(entry)
    assert event is None or event == TargetEvent("InstanceLinkCreated", {})


@pytest.mark.parametrize(
    "entry",
    [
        b'{"InstanceCreated"',
        b'{"InstanceCreated": 7}',
        b'{"InstanceCreated": {"instance": 7}}',
        b'{"InstanceCreated": {"instance": {"MlxRingInstance": {"instance_id": "i", "assignments": {}}}}}',
        b'{"InstanceDeleted": {"id": "i"}}',
        b'{"RunnerStatusUpdated": {"runner_id": "r", "runner_status": {"status": "RunnerReady"}}}',
        b'{"DeploymentCreated": {"deployment": {"deployment_id": "d"}}}',
        b'{"DeploymentPlaced": {"deployments": []}}',
        b'{"TaskCreated": {"task": 7}}',
    ],
)
def test_entries_that_matter_and_say_it_otherwise_are_not_understood(entry: bytes) -> None:
    assert isinstance(events.parse(entry), NotUnderstood)


async def test_what_is_not_understood_is_counted_and_found(api: Api, logs: EventLogs, written: Written) -> None:
    api.answers["/events"] = json.dumps([_noise(0), {"InstanceDeleted": {"id": "i"}}, _created(2)] * 2).encode()
    await logs.read("a", api.url)
    [finding] = [record for record in written.records if isinstance(record, Finding)]
    assert finding.code == "event-not-understood"
    assert finding.data == {"node": "a", "count": 2, "facets": ["events"]}
    assert [index for _, _, index, _ in _seen(written)] == [2, 5]


async def test_only_what_is_new_is_written(api: Api, logs: EventLogs, written: Written) -> None:
    events = [_noise(0), _created(1), _noise(2)]
    api.answers["/events"] = json.dumps(events).encode()
    assert await logs.read("a", api.url) == 1
    assert await logs.read("a", api.url) == 0
    events += [_created(3), _noise(4)]
    api.answers["/events"] = json.dumps(events).encode()
    assert await logs.read("a", api.url) == 1
    session = _seen(written)[0][1]
    assert _seen(written) == [("a", session, 1, "i1"), ("a", session, 3, "i3")]


async def test_nodes_that_follow_the_same_log_share_its_session(api: Api, logs: EventLogs, written: Written) -> None:
    api.answers["/events"] = json.dumps([_noise(0), _created(1), _request(2)]).encode()
    await logs.read("a", api.url)
    await logs.read("b", api.url)
    a, b = _seen(written)
    assert (a[0], b[0]) == ("a", "b")
    assert a[1] == b[1]
    served = [record for record in written.records if isinstance(record, InstanceServed)]
    assert [(record.response_ids, record.instance) for record in served] == [(["c2"], "i1")]


@pytest.mark.parametrize(
    ("second", "new"),
    [
        ([_noise(9), _created(1), _noise(2)], [1]),  # another beginning
        ([_noise(0), _created(1)], [1]),  # shorter
        ([_noise(0), _created(1), _noise(7), _created(8)], [1, 8]),  # as long, but another story
        ([_noise(0)], []),  # nothing in it yet
    ],
)
async def test_a_log_that_began_anew_is_another_session(
    api: Api, logs: EventLogs, written: Written, second: list[Any], new: list[int]
) -> None:
    api.answers["/events"] = json.dumps([_noise(0), _created(1), _noise(2)]).encode()
    await logs.read("a", api.url)
    first = _seen(written)[0][1]
    api.answers["/events"] = json.dumps(second).encode()
    await logs.read("a", api.url)
    assert [instance for *_, instance in _seen(written)[1:]] == [f"i{number}" for number in new]
    assert first not in {session for _, session, _, _ in _seen(written)[1:]}
    api.answers["/events"] = json.dumps([*second, _created(20)]).encode()
    await logs.read("a", api.url)
    assert _seen(written)[-1][3] == "i20"
    assert len({session for _, session, _, _ in _seen(written)}) == 2


async def test_who_served_what_is_told_by_the_hundred_and_once(api: Api, logs: EventLogs, written: Written) -> None:
    events = [_created(0), *(_request(number) for number in range(1, SERVED_AT_ONCE + 3))]
    api.answers["/events"] = json.dumps(events).encode()
    await logs.read("a", api.url)
    await logs.read("b", api.url)
    served = [record for record in written.records if isinstance(record, InstanceServed)]
    assert [(record.node, record.instance, len(record.response_ids)) for record in served] == [
        ("a", "i1", SERVED_AT_ONCE),
        ("a", "i1", 2),
    ]
    told = [response_id for record in served for response_id in record.response_ids]
    assert told == [f"c{number}" for number in range(1, SERVED_AT_ONCE + 3)]


async def test_what_was_read_of_a_cut_log_is_told(api: Api, logs: EventLogs, written: Written) -> None:
    whole = json.dumps([_request(1), _request(2), _request(3)]).encode()
    api.answers["/events"] = whole[: whole.rindex(b"TaskCreated")]
    assert await logs.read("a", api.url) == 1
    assert [record.response_ids for record in written.records if isinstance(record, InstanceServed)] == [["c1", "c2"]]


async def test_a_cut_log_is_a_finding_and_is_gone_on_with(api: Api, logs: EventLogs, written: Written) -> None:
    events = [_created(number) for number in range(6)]
    whole = json.dumps(events).encode()
    api.answers["/events"] = whole[: len(whole) // 2]
    read = await logs.read("a", api.url)
    assert 0 < read < 6
    assert [record.code for record in written.records if isinstance(record, Finding)] == ["event-log-unread"]
    api.answers["/events"] = b"<html>"
    assert await logs.read("a", api.url) == 0
    api.answers["/events"] = whole
    await logs.read("a", api.url)
    assert [index for _, _, index, _ in _seen(written)] == list(range(6))
    assert len({session for _, session, _, _ in _seen(written)}) == 1


async def test_a_runner_between_ready_and_running_is_no_event(api: Api, logs: EventLogs, written: Written) -> None:
    statuses = ["RunnerLoading", "RunnerLoading", "RunnerReady", "RunnerRunning", "RunnerReady", "RunnerFailed"]
    events: list[Any] = [
        {"RunnerStatusUpdated": {"runner_id": "r", "runner_status": {status: {}}}} for status in statuses
    ]
    api.answers["/events"] = json.dumps(events).encode()
    await logs.read("a", api.url)
    told = [record.data["status"] for record in written.records if isinstance(record, EventSeen)]
    assert told == ["RunnerLoading", "RunnerReady", "RunnerFailed"]


def test_a_reading_that_broke_off_within_the_known_decides_nothing() -> None:
    known = KnownLog(first=digest(b"0"), session="s", count=3, last=digest(b"2"))
    reading = LogReading(known)
    event = TargetEvent("InstanceDeleted", {})
    assert reading.take(0, b"0", event) == []
    assert reading.take(1, b"other", event) == []
    assert reading.matching
    assert reading.take(2, b"2", None) == []
    assert not reading.matching
    assert reading.take(3, b"3", event) == [(3, event, {})]


def test_reports_are_a_clock_and_the_first_of_a_node_is_news() -> None:
    reading, created = LogReading(KnownLog()), TargetEvent("InstanceCreated", {})
    first = TargetEvent("NodeReported", {"node": "a"})
    assert reading.take(0, b"0", Reported("a")) == [(0, first, {"a": 1})]
    assert reading.take(1, b"1", Reported("a")) == []
    assert reading.take(2, b"2", Reported("b")) == [(2, TargetEvent("NodeReported", {"node": "b"}), {"a": 2, "b": 1})]
    assert reading.take(3, b"3", created) == [(3, created, {"a": 2, "b": 1})]
    reading.take(4, b"4", TargetEvent("NodeTimedOut", {"node": "a"}))
    assert reading.take(5, b"5", Reported("a")) == [(5, first, {"a": 3, "b": 1})]
