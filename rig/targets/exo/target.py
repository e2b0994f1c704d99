"""exo as a target: it has every ability."""

from __future__ import annotations

from typing import Final

from rig.targets.exo.api import Exo
from rig.targets.target import Opener, Target


def exo_target(exo: Exo) -> Target:
    return Target(
        name="exo",
        token_a_chunk=True,
        views=exo,
        deploys=exo,
        instances=exo,
        primary=exo,
        event_log=exo,
        who_served=exo,
        close=exo.close,
    )


TARGET: Final = Opener(lambda: exo_target(Exo()))
