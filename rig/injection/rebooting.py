"""Following a reboot: the script does not live to tell of it, the lease and the next boot do.

The strike is when the script asked the machine to restart; it counts as struck when the boot is another one. What is
said after the boot is on a new clock: it is moved onto the old one by way of the controller's, so that one offset
serves for the whole fault.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from rig.errors import NodeError
from rig.injection.act import Watcher
from rig.injection.acts import Act
from rig.injection.lease import heal_on
from rig.nodes.inspect import inspect
from rig.nodes.scripts import ScriptEvent, parse_event, q

BOOT_LIMIT_S: Final = 600.0  # a Mac Studio takes about one minute
POLL_S: Final = 1.0


class RebootWatcher(Watcher):
    """As a Watcher, but a lost connection is what is expected, and a changed boot is the proof."""

    async def run(self, values: dict[str, str]) -> None:
        self._boot = ""
        try:
            self._boot = (await inspect(self.conn, "clock")).boot_id
        except NodeError as exc:
            self._finish("skipped", f"nothing was struck: {exc.message}")
            return
        await super().run(values)

    async def _relearn(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BOOT_LIMIT_S
        why = self.progress.detail
        while loop.time() < deadline:
            try:
                seen = await inspect(self.conn, "leases")
                boot = await inspect(self.conn, "clock")
                if boot.boot_id != self._boot:
                    if any(one.id == self._fault_id for one in seen.leases):
                        await heal_on(self.conn, self._fault_id)
                    await self._learn_after_boot(loop.time())
                    return
            except NodeError as exc:
                why = exc.message
            await asyncio.sleep(POLL_S)
        self._finish("unhealed", f"the node did not come back within {BOOT_LIMIT_S:g} s: {why}")

    async def _learn_after_boot(self, now: float) -> None:
        """From the script's log, which lies on disk, the events of the new boot moved onto the old clock."""
        clock = (await inspect(self.conn, "clock")).clock
        path = f"{self.conn.node.rig_dir}/log/{self._fault_id}.log"
        said = await self.conn.run(f"cat {q(path)}", check=False)
        events = [event for event in map(parse_event, said.stdout.splitlines()) if event is not None]
        self.progress.events[:] = on_one_clock(events, self.progress.events, clock=clock, seen_s=now)
        healed = self.progress.first("healed")
        if healed is None or healed.fields.get("rebooted") != "1":
            self._finish("unhealed", "the node did restart, but its lease was not undone")
            return
        self._finish("healed", "")


def on_one_clock(log: list[ScriptEvent], heard: list[ScriptEvent], *, clock: float, seen_s: float) -> list[ScriptEvent]:
    """The events of a reboot as if one clock had told them all: `striking` becomes `struck`. Pure.

    `clock` is the node's clock at `seen_s` on the controller's, which each event in `heard` was stamped with at its
    arrival (`heard_s`).
    """
    leased = next((event for event in heard if event.event == "leased" and event.heard_s is not None), None)
    moved: list[ScriptEvent] = []
    after_boot = False
    for event in log:
        after_boot = after_boot or event.event == "healing"
        if event.event == "striking":
            moved.append(replace(event, event="struck"))
        elif after_boot and leased is not None and leased.heard_s is not None:
            at_s = seen_s - (clock - event.node_t)
            moved.append(replace(event, node_t=round(leased.node_t + at_s - leased.heard_s, 3)))
        else:
            moved.append(event)
    return moved


def watcher_of(act: Act) -> type[Watcher]:
    """The kind of watcher that a script needs."""
    return RebootWatcher if act.script == "reboot.sh" else Watcher
