"""Field types shared by the three kinds of files: a strict base model, durations and ranges of durations."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Strict(BaseModel):
    """Unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def parse_duration(value: Any) -> float:
    """`45s`, `2.5m`, `250ms`, `3h`, `1d` → seconds. Raises ValueError saying what was expected."""
    if isinstance(value, str) and (match := _DURATION.match(value)):
        return float(match[1]) * _UNIT_S[match[2]]
    raise ValueError(f"expected a duration such as 45s, 2.5m or 250ms, not {value!r}")


def parse_span(value: Any) -> tuple[float, float]:
    """`60s..150s` → (60.0, 150.0); a single duration is a range of one value."""
    if not isinstance(value, str):
        raise ValueError(f"expected a range of durations such as 60s..150s, not {value!r}")
    low_text, dots, high_text = value.partition("..")
    low = parse_duration(low_text)
    high = parse_duration(high_text) if dots else low
    if high < low:
        raise ValueError(f"the range {value!r} ends before it begins")
    return low, high


def _duration(value: Any) -> float:
    return float(value) if isinstance(value, float) else parse_duration(value)


def _span(value: Any) -> tuple[float, float]:
    return cast("tuple[float, float]", value) if isinstance(value, tuple) else parse_span(value)


Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds, written as `45s`, `2.5m`, `250ms`."""
Span = Annotated[tuple[float, float], BeforeValidator(_span)]
"""(low, high) seconds, written as `60s..150s`."""
