"""One fault script on one node, watched from its lease to its end, also over the loss of the connection.

The script does everything by itself; the watcher only listens. When the connection goes it comes back and reads the
script's own log, for at most the rest of the hold and RELEARN_S more. What it cannot learn it says it does not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from rig.errors import CommandTimeout, NodeError, TransportError
from rig.injection.acts import Act
from rig.injection.lease import heal_on
from rig.nodes.node import NodeConnection
from rig.nodes.scripts import ScriptEvent

End = Literal["healed", "skipped", "ineffective", "unhealed", "invalid"]

RELEARN_S = 30.0
SCRIPT_GRACE_S = 75.0  # beyond the hold; a script ends itself within hold + 60 s
POLL_S = 0.3
LOG_LIMIT_S = 10.0
GONE = "the script is gone without an end"
LAST_EVENTS = frozenset({"dropped", "skipped", "unhealed"})
_BY_EVENT: tuple[End, ...] = ("unhealed", "skipped", "ineffective", "healed")
_ENDS: dict[int, End] = {0: "healed", 10: "skipped", 11: "ineffective", 12: "unhealed"}


@dataclass
class Progress:
    """What is known of one script. `end` is set once, last; `lost` says that the connection broke on the way."""

    act: Act
    events: list[ScriptEvent] = field(default_factory=list[ScriptEvent])
    end: End | None = None
    detail: str = ""
    lost: bool = False

    def first(self, event: str) -> ScriptEvent | None:
        return next((one for one in self.events if one.event == event), None)

    @property
    def in_force(self) -> bool:
        """Struck, or about to be, and not known to be undone."""
        return self.end is None and self.first("leased") is not None and self.first("healed") is None


class Watcher:
    """Runs one act. `changed` is called after every event and at the end."""

    def __init__(
        self, conn: NodeConnection, act: Act, fault_id: str, hold_s: float, changed: Callable[[], None]
    ) -> None:
        self.conn = conn
        self.progress = Progress(act)
        self._fault_id = fault_id
        self._hold_s = hold_s
        self._changed = changed

    async def run(self, values: dict[str, str]) -> None:
        """Starts the script (`values`: id, run, owner, hold, at) and follows it to its end. Never raises NodeError.

        It strikes only while the node still is under the lock that the connection holds there.
        """
        progress = self.progress
        script, given = progress.act.script, {**progress.act.values, **values}
        try:
            end = await self.conn.strike(script, given, self._heard, timeout_s=self._hold_s + SCRIPT_GRACE_S)
            if end.status in _ENDS:
                self._finish(_ENDS[end.status], _reason(progress.events) or end.message)
            else:
                ended = f"by signal {end.signal}" if end.signal else f"with status {end.status}"
                await self._heal_from_lease(f"{script} ended {ended}{f': {end.message}' if end.message else ''}")
        except TransportError as exc:
            progress.lost = True
            progress.detail = exc.message
            await self._relearn()
        except CommandTimeout as exc:
            await self._heal_from_lease(f"{exc.message}; healed from its lease")
        except NodeError as exc:
            await self._heal_from_lease(exc.message)

    def _heard(self, event: ScriptEvent) -> None:
        self.progress.events.append(replace(event, heard_s=asyncio.get_running_loop().time()))
        self._changed()

    async def heal(self, timeout_s: float) -> None:
        """Ends the hold early. The script heals by itself on being told; the watcher sees it in the script's events."""
        await heal_on(self.conn, self._fault_id, timeout_s=timeout_s)

    async def _relearn(self) -> None:
        """After a lost connection: reads the script's log until its last event, or until time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._hold_s + RELEARN_S
        why, gone = self.progress.detail, False
        while (left_s := deadline - loop.time()) > 0:
            try:
                alive = await self._script_alive()  # asked first: one that ends in between has its end in its log
                self._replace(await self.conn.fault_log(self._fault_id, timeout_s=min(left_s, LOG_LIMIT_S)))
                if self._ended(why):
                    return
                if gone and not alive:  # twice: the lease goes a moment before the script says so
                    await self._heal_from_lease(f"{GONE} ({why})")
                    return
                gone = not alive
            except NodeError as exc:
                why = exc.message
            await asyncio.sleep(min(POLL_S, max(0.0, deadline - loop.time())))
        self._finish("unhealed", f"not known how it ended: {why}")

    def _ended(self, why: str) -> bool:
        """Whether the script has said its last word; the fault ends with that."""
        events = self.progress.events
        if not events or events[-1].event not in LAST_EVENTS:
            return False
        self._finish(end_of(events), f"{_reason(events)} (connection lost on the way: {why})".lstrip())
        return True

    async def _script_alive(self) -> bool:
        """Whether the lease is there with its script running, or the script never came so far (then it never will)."""
        seen = await self.conn.inspect("leases")
        return any(lease.id == self._fault_id and lease.script_alive for lease in seen.leases)

    async def _heal_from_lease(self, why: str) -> None:
        healed = await heal_on(self.conn, self._fault_id)
        self.progress.events.extend(healed.events)
        self._finish(
            "invalid" if healed.ok else "unhealed", why if healed.ok else f"{why}; {healed.detail or 'not healed'}"
        )

    def _replace(self, events: list[ScriptEvent]) -> None:
        if len(events) > len(self.progress.events):
            self.progress.events[:] = events
            self._changed()

    def _finish(self, end: End, detail: str) -> None:
        self.progress.end = end
        self.progress.detail = detail
        self._changed()


def end_of(events: list[ScriptEvent]) -> End:
    """How a script ended, from its events alone, as its exit status would say. Pure.

    A heal by `heal.sh` (`by=heal`) means that the script did not live to its end.
    """
    if any(event.event == "healed" and event.fields.get("by") == "heal" for event in events):
        return "invalid"
    names = {event.event for event in events}
    for end in _BY_EVENT:
        if end in names:
            return end
    return "invalid"


def told_to_heal(progress: Progress) -> bool:
    """Whether the script healed because of a signal, and not because its hold was over. Pure."""
    healing = progress.first("healing")
    return healing is not None and healing.fields.get("why") == "signal"


def _reason(events: list[ScriptEvent]) -> str:
    return next((event.fields["reason"] for event in reversed(events) if "reason" in event.fields), "")
