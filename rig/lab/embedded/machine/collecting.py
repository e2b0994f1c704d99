"""Notes the end of processes that a machine adopted, and reaps them."""

from __future__ import annotations

import asyncio

from rig.lab.embedded import orphans
from rig.lab.ledger import Ledger, ProcessExited

COLLECT_S = 0.1


async def collect_orphans(ledger: Ledger, node: str) -> None:
    """Note the end of processes whose main died before them, until cancelled."""

    def ended(pid: int, status: int) -> None:
        ledger.write(ProcessExited(t=ledger.now(), node=node, role="orphan", pid=pid, status=status))

    collector = orphans.Collector(ended)
    while True:
        collector.collect()
        await asyncio.sleep(COLLECT_S)
