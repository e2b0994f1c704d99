"""Following a reboot: the script does not live to tell of it, the lease and the next boot do.

The strike is when the script asked the machine to restart; it counts as struck when the boot is another one. What is
said after the boot is on a new clock: it is moved onto the old one by way of the controller's, so that one offset
serves for the whole fault. A restart that was asked for cannot be taken back: whatever happens to the script then, the
next boot is awaited, and the lease stays until then or until it is sure that none comes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from rig.errors import NodeError
from rig.injection.act import GONE, LAST_EVENTS, LOG_LIMIT_S, Watcher
from rig.injection.acts import Act
from rig.injection.lease import heal_on
from rig.nodes.own_boot import THE_RIGS_OWN, own_boot
from rig.nodes.scripts import ScriptEvent

BOOT_LIMIT_S: Final = 600.0  # a Mac Studio takes about one minute
RESTART_LIMIT_S: Final = 140.0  # a restart that has not begun by then does not come; reboot.sh gives it 120 s
POLL_S: Final = 1.0


class RebootWatcher(Watcher):
    """As a Watcher, but a lost connection is what is expected, and a changed boot is the proof."""

    async def run(self, values: dict[str, str]) -> None:
        self._boot = ""
        try:
            self._boot = (await self.conn.inspect("clock")).boot_id
        except NodeError as exc:
            self._finish("skipped", f"nothing was struck: {exc.message}")
            return
        if self._boot == await own_boot():
            self._finish("skipped", f"nothing was struck: {THE_RIGS_OWN}")
            return
        await super().run(values)

    async def heal(self, timeout_s: float) -> None:
        if self.progress.first("striking") is None:
            await super().heal(timeout_s)

    async def _heal_from_lease(self, why: str) -> None:
        if self.progress.first("striking") is None:
            await super()._heal_from_lease(why)
        else:
            self.progress.detail = why
            await self._relearn()

    async def _relearn(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        why, gone = self.progress.detail, False
        while loop.time() < begun + BOOT_LIMIT_S:
            try:
                seen = await self.conn.inspect("leases")
                boot = await self.conn.inspect("clock")
                lease = next((one for one in seen.leases if one.id == self._fault_id), None)
                if boot.boot_id != self._boot:
                    if lease is not None:
                        await heal_on(self.conn, self._fault_id)
                    await self._learn_after_boot(loop.time())
                    return
                if lease is None:
                    log = await self.conn.fault_log(self._fault_id, timeout_s=LOG_LIMIT_S)
                    if log and log[-1].event in LAST_EVENTS:
                        self._replace(log)
                        self._ended(why)
                        return
                    if gone:  # twice: the lease goes a moment before the script says so
                        await super()._heal_from_lease(f"{GONE} ({why})")
                        return
                gone = lease is None
                if lease is not None and loop.time() > begun + RESTART_LIMIT_S:
                    await heal_on(self.conn, self._fault_id)
            except NodeError as exc:
                why = exc.message
            await asyncio.sleep(POLL_S)
        self._finish("unhealed", f"the node did not come back within {BOOT_LIMIT_S:g} s: {why}")

    async def _learn_after_boot(self, now: float) -> None:
        """From the script's log, which lies on disk, the events of the new boot moved onto the old clock."""
        clock = (await self.conn.inspect("clock")).clock
        log = await self.conn.fault_log(self._fault_id, timeout_s=LOG_LIMIT_S)
        self.progress.events[:] = on_one_clock(log, self.progress.events, clock=clock, seen_s=now)
        if not any(event.event == "healed" and event.fields.get("rebooted") == "1" for event in log):
            self._finish("unhealed", "the node did restart, but its lease was not undone")
        elif self.progress.first("healed") is None:
            self._finish("invalid", "the node did restart and is healed, but no word of before tells when")
        else:
            self._finish("healed", "")


def on_one_clock(log: list[ScriptEvent], heard: list[ScriptEvent], *, clock: float, seen_s: float) -> list[ScriptEvent]:
    """The events of a reboot as if one clock had told them all: `striking` becomes `struck`. Pure.

    `clock` is the node's clock at `seen_s` on the controller's, which each event in `heard` was stamped with at its
    arrival (`heard_s`). Where no event of before the boot was heard, those after it have no place and are left out.
    """
    leased = next((event for event in heard if event.event == "leased" and event.heard_s is not None), None)
    moved: list[ScriptEvent] = []
    after_boot = False
    for event in log:
        after_boot = after_boot or event.event == "healing"
        if event.event == "striking":
            moved.append(replace(event, event="struck"))
        elif not after_boot:
            moved.append(event)
        elif leased is not None and leased.heard_s is not None:
            at_s = seen_s - (clock - event.node_t)
            moved.append(replace(event, node_t=round(leased.node_t + at_s - leased.heard_s, 3)))
    return moved


def watcher_of(act: Act) -> type[Watcher]:
    """The kind of watcher that a script needs."""
    return RebootWatcher if act.kind.effect == "restarted" else Watcher
