"""The garbage collector, kept out of the way of time stamps.

A full collection walks every object alive, tens of milliseconds in a process that has imported what a run needs, and
nothing is stamped meanwhile. What is alive when a run begins stays alive, so it is set aside; and a request leaves
hardly any cycles behind, so the young ones are looked at less often.
"""

from __future__ import annotations

import gc
from typing import Final

_YOUNG: Final = 20_000  # net new objects before the young ones are looked at (Python: 700 to 2,000)
_MIDDLE: Final = 20  # such looks before the middle-aged are
_OLD: Final = 50  # of those before all are; memory stays bounded, since all of them still happen


def settle_collector() -> None:
    """Call once, when everything is set up and before anything is measured."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
