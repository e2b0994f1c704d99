"""The real packet filter of a Linux node: every change of it goes into the ledger, whoever made it.

The node's own `nft` is the real one, started through the machine, so that the ledger knows the command and what the
removed rules had dropped. Changes by other ways are noticed too (`nft monitor`), without these.
"""

from __future__ import annotations

import asyncio
import contextlib

from rig.lab.embedded.machine.answering import Answer
from rig.lab.embedded.machine.real import real
from rig.lab.hosts.nft_rules import ListedRule, dropped, parse
from rig.lab.ledger import FilterChanged, Ledger

NFT = "/usr/sbin/nft"
BY_SOMEBODY = "(not by the node's nft)"


class FilterWatch:
    def __init__(self, node: str, ledger: Ledger) -> None:
        self.node = node
        self.ledger = ledger
        self.rules: list[ListedRule] = []
        self._lock = asyncio.Lock()
        self._command = BY_SOMEBODY

    async def run(self, arguments: list[str], folder: str) -> Answer:
        """The node's `nft`: the real one, in `folder`."""
        async with self._lock:
            if "list" not in arguments[:2]:
                self.rules = parse(await _listing())  # the counts, before they go
            self._command = "nft " + " ".join(arguments)
            try:
                answer = await real(NFT, *arguments, folder=folder)
                await self._look()
            finally:
                self._command = BY_SOMEBODY
            return answer

    async def follow(self) -> None:
        """Notice changes by others, until cancelled."""
        monitor = await asyncio.create_subprocess_exec(
            *(NFT, "monitor"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert monitor.stdout is not None
        try:
            while await monitor.stdout.read(65536):
                async with self._lock:
                    await self._look()
        finally:
            with contextlib.suppress(ProcessLookupError):
                monitor.kill()

    async def _look(self) -> None:
        before, now = self.rules, parse(await _listing())
        self.rules = now
        if [str(rule) for rule in before] == [str(rule) for rule in now]:
            return
        owners = {rule.owner for rule in now}
        gone = sum(packets for owner, packets in dropped(before).items() if owner not in owners)
        self.ledger.write(
            FilterChanged(
                t=self.ledger.now(),
                node=self.node,
                command=self._command,
                rules=[str(rule) for rule in now],
                packets=gone,
            )
        )


async def _listing() -> str:
    return (await real(NFT, "list", "ruleset")).out
