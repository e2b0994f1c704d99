"""What `rig load --canaries` found of the answers, without any fault: alike or not, alone and among other requests."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from rig.analysis.answers.variants import Variants
from rig.analysis.answers.watch import AnswerWatch


def answers_json(watch: AnswerWatch) -> dict[str, Any] | None:
    """None where no canary was answered."""
    if not watch.asked:
        return None
    return {
        "asked": watch.asked,
        "combinations": len(watch.variants),
        "stable": len(watch.stable),
        "unstable": len(watch.varied),
        "by_canary": {str(asked): _counts(variants) for asked, variants in watch.variants.items()},
        "crossed": watch.crossed(),
        "malformed": {record.id: record.what for record in watch.malformed},
    }


def answers_table(watch: AnswerWatch) -> Table:
    title = f"{watch.asked} canaries answered; {len(watch.stable)} of {len(watch.variants)} always alike"
    table = Table(title=Text(title), title_justify="left")
    table.add_column("canary")
    for name in ("answers", "alone", "alike", "in load", "as alone"):
        table.add_column(name, justify="right")
    for asked, variants in watch.variants.items():
        table.add_row(str(asked), *("-" if count is None else str(count) for count in _counts(variants).values()))
    return table


def answers_flags(watch: AnswerWatch) -> list[str]:
    """What a client would not expect, in words."""
    found = [f"cross-talk: {line}" for line in watch.crossed()]
    if watch.malformed_count:
        first = watch.malformed[0]
        found.append(f"{watch.malformed_count} answers are malformed: {first.id}: {', '.join(first.what)}")
    return found


def _counts(variants: Variants) -> dict[str, int | None]:
    """`as_alone` is None where nothing was answered alone."""
    some = variants.by_digest.values()
    usual = max((variant for variant in some if variant.alone), key=lambda variant: variant.alone, default=None)
    return {
        "different": len(some) + variants.more,
        "alone": sum(variant.alone for variant in some),
        "alone_alike": 0 if usual is None else usual.alone,
        "loaded": sum(variant.loaded for variant in some) + variants.more,
        "as_alone": None if usual is None else usual.loaded,
    }
