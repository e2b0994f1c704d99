"""Ways to falsify one account of a run in one place. Each asserts that there was something to falsify."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from rig.journal.records import AnyRecord, ClockOffset, FaultChanged, FaultKind, RequestEnded, RequestStarted, Unwedged
from rig.lab import ledger
from rig.lab.audit.compare import compare
from rig.lab.audit.story import agreeing
from rig.lab.audit.world import MODEL, ZERO, World
from rig.lab.embedded import sampler

Change: TypeAlias = Callable[[World], None]
Case: TypeAlias = tuple[
    str, Change, str, str
]  # its name, what is falsified, whom the audit names, a word of what it says
E = TypeVar("E", bound=ledger.AnyEntry)

# the journal


def ended(name: str, **changes: Any) -> Change:
    def change(world: World) -> None:
        world.journal[:] = [
            msgspec.structs.replace(record, **changes)
            if isinstance(record, RequestEnded) and record.id == name
            else record
            for record in world.journal
        ]

    return change


def without_end(name: str) -> Change:
    return without(lambda record: isinstance(record, RequestEnded) and record.id == name)


def without_request(name: str) -> Change:
    return without(lambda record: isinstance(record, RequestStarted | RequestEnded) and record.id == name)


def without(wanted: Callable[[AnyRecord], bool]) -> Change:
    def change(world: World) -> None:
        kept = [record for record in world.journal if not wanted(record)]
        assert len(kept) < len(world.journal)
        world.journal[:] = kept

    return change


def told(number: int, shift: dict[str, float], **fields: Any) -> Change:
    """A fault's moments shifted, in its records and in its node's own words alike; and fields of its node's words."""

    def altered(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, FaultChanged) or record.fault != number:
            return record
        evidence = {
            name: _said(cast("dict[str, dict[str, Any]]", said), shift, fields) if isinstance(said, dict) else said
            for name, said in record.evidence.items()
        }
        return msgspec.structs.replace(record, at_t=record.at_t + shift.get(record.state, 0.0), evidence=evidence)

    def change(world: World) -> None:
        world.journal[:] = [altered(record) for record in world.journal]

    return change


def _said(
    said: dict[str, dict[str, Any]], shift: dict[str, float], fields: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    return {event: _altered(event, words, shift, fields) for event, words in said.items()}


def _altered(event: str, words: dict[str, Any], shift: dict[str, float], fields: dict[str, Any]) -> dict[str, Any]:
    by_s = shift.get(event, 0.0)
    moved = {name: str(float(words[name]) + by_s) for name in ("proof_t",) if name in words}
    replaced = {name: fields[f"{event}_{name}"] for name in words if f"{event}_{name}" in fields}
    return {**words, "node_t": words["node_t"] + by_s, **moved, **replaced}


def without_start(name: str) -> Change:
    return without(lambda record: isinstance(record, RequestStarted) and record.id == name)


def again(kind: type[RequestStarted | RequestEnded]) -> Change:
    """The first of its kind is written a second time."""

    def change(world: World) -> None:
        world.journal.append(next(record for record in world.journal if isinstance(record, kind)))

    return change


def reported(number: int, state: str, by_s: float) -> Change:
    """A moment shifted in the record alone, not in the node's own words."""

    def change(world: World) -> None:
        world.journal[:] = [
            msgspec.structs.replace(record, at_t=record.at_t + by_s)
            if isinstance(record, FaultChanged) and (record.fault, record.state) == (number, state)
            else record
            for record in world.journal
        ]

    return change


def planned_hold(number: int, hold_s: float) -> Change:
    def change(world: World) -> None:
        world.journal[:] = [
            msgspec.structs.replace(record, hold_s=hold_s)
            if isinstance(record, FaultChanged) and record.fault == number
            else record
            for record in world.journal
        ]

    return change


def another_kind(world: World) -> None:
    world.journal[:] = [
        msgspec.structs.replace(record, fault_kind=cast("FaultKind", "flood"))
        if isinstance(record, FaultChanged)
        else record
        for record in world.journal
    ]


def twice(world: World) -> None:
    healed = [record for record in world.journal if isinstance(record, FaultChanged) and record.state == "healed"]
    world.journal.append(healed[0])


def offset_off(world: World) -> None:
    world.journal.append(ClockOffset(t=65.0, node="node-1", offset_s=-ZERO + 0.05, error_s=0.003))


def unwedged(world: World) -> None:
    world.journal.append(
        Unwedged(t=66.0, fault=3, node="node-1", started_t=65.0, ended_t=66.0, ok=True, detail="healed")
    )


def without_fault(number: int) -> Change:
    return without(lambda record: isinstance(record, FaultChanged) and record.fault == number)


# the ledger and the samples


def entry(kind: type[E], wanted: Callable[[E], bool], **changes: Any) -> Change:
    """Lines of the ledger changed (or dropped, without changes)."""

    def change(world: World) -> None:
        hits = 0
        for key, entries in world.files.items():
            kept: list[ledger.AnyEntry] = []
            for each in entries:
                if isinstance(each, kind) and wanted(each):
                    hits += 1
                    if changes:
                        kept.append(msgspec.structs.replace(each, **changes))
                else:
                    kept.append(each)
            world.files[key] = kept
        assert hits

    return change


def sample(wanted: Callable[[sampler.AnySample], bool], **changes: Any) -> Change:
    def change(world: World) -> None:
        kept = [
            msgspec.structs.replace(each, **changes) if wanted(each) else each
            for each in world.samples
            if changes or not wanted(each)
        ]
        assert kept != world.samples
        world.samples[:] = kept

    return change


def seen(pid: int, state: str, after_t: float = -10.0) -> Callable[[sampler.AnySample], bool]:
    def wanted(each: sampler.AnySample) -> bool:
        return (
            isinstance(each, sampler.ProcessSeen) and (each.pid, each.state) == (pid, state) and each.t > after_t + ZERO
        )

    return wanted


def opened(name: str, **changes: Any) -> Change:
    return entry(ledger.RequestOpened, lambda each: each.request == name, **changes)


def closed(name: str, **changes: Any) -> Change:
    return entry(ledger.RequestClosed, lambda each: each.request == name, **changes)


def begun(pid: int, **changes: Any) -> Change:
    return entry(ledger.ProcessStarted, lambda each: each.pid == pid, **changes)


def exited(pid: int, **changes: Any) -> Change:
    return entry(ledger.ProcessExited, lambda each: each.pid == pid, **changes)


def survived(world: World) -> None:
    """A runner that the crash is said to have killed."""
    exited(102)(world)
    sample(seen(102, "-"))(world)


def woke_for_a_moment(world: World) -> None:
    world.see(201, 21.0, "S")
    world.see(201, 21.1, "T")


def another_stop(world: World) -> None:
    world.see(300, 45.0, "T")
    world.see(300, 45.2, "S")


def another_kill(world: World) -> None:
    world.runner("node-1", 350, 44.0, main=300)
    world.end(350, 46.0, -9)


def another_process_killed_by_the_crash(world: World) -> None:
    world.runner("node-2", 250, 5.0, main=200)
    world.end(250, 30.1, -9)


def another_main(world: World) -> None:
    world.begin("node-1", "main", 390, 55.0)
    world.end(390, 55.9, 1)


def another_rule(world: World) -> None:
    world.filter("node-2", 55.0, ["inet other in: ip saddr 10.77.0.1 counter drop"])


def another_request(world: World) -> None:
    world.file("node-1", "exo", 100, -5.0).append(
        ledger.RequestOpened(t=ZERO + 5.0, node="node-1", response="x", model=MODEL, streamed=True, request="")
    )


def main_in_between(world: World) -> None:
    world.begin("node-1", "main", 290, 30.5)
    world.end(290, 30.8, 1)


def out_of_sight(world: World) -> None:
    exited(300)(world)
    sample(seen(300, "-"))(world)


def never_serving(world: World) -> None:
    world.begin("node-1", "main", 390, 55.0)
    world.file("node-1", "exo", 390, 55.0).pop()


def taken_twice(world: World) -> None:
    world.file("node-1", "exo", 100, -5.0).append(
        ledger.RequestOpened(t=ZERO + 1.2, node="node-1", response="x", model=MODEL, streamed=True, request="r1")
    )


def sent_twice(world: World) -> None:
    world.file("node-2", "exo", 200, -5.0).append(
        ledger.RequestOpened(t=ZERO + 1.2, node="node-2", response="x", model=MODEL, streamed=True, request="r1")
    )


def rules_seen_late(world: World) -> None:
    sample(lambda each: isinstance(each, sampler.NetworkSeen) and bool(each.rules), t=ZERO + 51.0)(world)


def rules_stayed(world: World) -> None:
    rules = [each for each in world.machine("node-1") if isinstance(each, ledger.FilterChanged)]
    world.machine("node-1")[:] = [each for each in world.machine("node-1") if each is not rules[-1]]


def half_cut(world: World) -> None:
    loaded = next(each for each in world.machine("node-1") if isinstance(each, ledger.FilterChanged))
    loaded.rules[:] = [rule for rule in loaded.rules if "ip6" not in rule]


def assert_named(change: Change, about: str, word: str) -> None:
    """A run that agreed, falsified: a difference names `about`, and one of its accounts says `word`."""
    world = agreeing()
    change(world)
    found = compare(world.rig(), world.cluster()).differences
    named = [each for each in found if about in f"{each.about} " and word in f"{each.rig} | {each.cluster}"]
    assert named, f"neither {about!r} nor {word!r} in {found}"
