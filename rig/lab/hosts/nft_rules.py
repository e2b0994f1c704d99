"""What the kernel's packet filter holds, as `nft list ruleset` prints it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

TABLE = re.compile(r"table (\S+ \S+) \{")
CHAIN = re.compile(r"\s+chain (\S+) \{")
HOOK = re.compile(r"\s+type \S+ hook (\S+) ")
COUNTED = re.compile(r"counter packets (\d+) bytes \d+")
HOOKS = {"input": "in", "output": "out"}


@dataclass(frozen=True)
class ListedRule:
    """`owner` is the table with its family; `text` has no counts."""

    owner: str
    hook: str
    text: str
    packets: int

    def __str__(self) -> str:
        return f"{self.owner} {self.hook}: {self.text}"

    @property
    def drops(self) -> bool:
        return self.text.endswith("drop")


def parse(listing: str) -> list[ListedRule]:
    """Rules of chains that hang on a hook, in order; those on the forward hook are left out (nodes do not forward)."""
    found: list[ListedRule] = []
    owner, hook = "", ""
    for line in listing.splitlines():
        if table := TABLE.match(line):
            owner = table[1]
        elif CHAIN.match(line):
            hook = ""
        elif hooked := HOOK.match(line):
            hook = HOOKS.get(hooked[1], "")
        elif hook and line.startswith("\t\t"):
            counted = COUNTED.search(line)
            text = COUNTED.sub("counter", line.strip())
            found.append(ListedRule(owner, hook, text, int(counted[1]) if counted else 0))
    return found


def dropped(rules: list[ListedRule]) -> dict[str, int]:
    """Packets dropped so far, by owner."""
    sums: dict[str, int] = {}
    for rule in rules:
        sums[rule.owner] = sums.get(rule.owner, 0) + (rule.packets if rule.drops else 0)
    return sums
