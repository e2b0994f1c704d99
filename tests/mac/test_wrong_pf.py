"""A few of the wrong variants (`make wrong-pf` tries all), and the stock script, which must not be faulted."""

from __future__ import annotations

import pytest

from tests.hosts.hosts import Hosts
from tests.mac.variants import VARIANTS, Variant
from tests.mac.wrong_pf import caught, try_variant

FEW = {"a pass without `flags any no state`", "-d instead of -X: everybody's token is void"}


def test_the_stock_script_is_not_faulted(macs: Hosts) -> None:
    observed = try_variant(macs, None)
    assert (observed.said, observed.seen) == ("healed", [])


@pytest.mark.parametrize("wanted", [each for each in VARIANTS if each.name in FEW], ids=lambda each: each.name)
def test_a_wrong_one_is_caught(macs: Hosts, wanted: Variant) -> None:
    observed = try_variant(macs, wanted)
    assert caught(wanted, observed), observed


def test_there_are_enough() -> None:
    assert len({each.name for each in VARIANTS}) >= 15
    assert {each.name for each in VARIANTS} >= FEW
