"""A soak that cannot strike any fault of its plan says so before it starts."""

from __future__ import annotations

import pytest

from rig.cli.plan import too_short
from rig.faults.plan.read import load_all


@pytest.mark.parametrize(
    ("inventory", "plan", "length_s", "short"),
    [
        ("embedded", "quick", 10.0, True),
        ("embedded", "quick", 600.0, False),
        ("two-mac-studios", "keeper", 60.0, True),
        ("two-mac-studios", "keeper", 3600.0, False),
    ],
)
def test_it_is_told_from_the_plan_and_the_pace(inventory: str, plan: str, length_s: float, short: bool) -> None:  # noqa: FBT001
    said = too_short(length_s, *load_all(inventory, "chat", plan), None)
    assert bool(said) is short
    if short:
        assert f"too short for fault plan {plan}" in said
        assert "No fault will be struck" in said
