"""The table of kinds in `docs/faults.md`. After a change of a kind run `python -m rig.faults.plan.document`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from rig.faults.plan.kind import AnyKind
from rig.faults.plan.registry import KINDS

PAGE: Final = Path(__file__).parents[3] / "docs" / "faults.md"
_HEAD: Final = "| kind | what happens | struck is proved by | healed is proved by | needs |\n|---|---|---|---|---|\n"
_TABLE: Final = re.compile(re.escape(_HEAD) + r"(\|.*\n)*")


def table() -> str:
    """Markdown, a row a kind, in the order of the schedule."""
    return _HEAD + "".join(map(_row, KINDS.values()))


def with_table(page: str) -> str:
    """The page with the table of today."""
    return _TABLE.sub(lambda _: table(), page)


def _row(kind: AnyKind) -> str:
    return f"| `{kind.name}` | {kind.summary} | {kind.struck_by} | {kind.healed_by} | {kind.wants} |\n"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
