"""Results as Markdown, as they stand in docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def conclude(title: str, rows: Sequence[dict[str, Any]], path: Path | None) -> int:
    """Print the table, keep it as JSON where that was asked for, and give the exit code: 1 when a target was missed."""
    print_rows(title, rows)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, indent=1))
    return int(any(row.get("met") is False for row in rows))


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
