"""Results as Markdown, as they stand in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def print_rows(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """A table with the keys of the first row as its heads; what is None was not measured, or not asked for."""
    print(f"\n### {title}\n")
    if not rows:
        print("nothing was measured")
        return
    print("| " + " | ".join(str(name).replace("_", " ") for name in rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(map(_cell, row.values())) + " |")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
