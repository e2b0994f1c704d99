"""What all parts of one node share: who it is, how it behaves, its randomness, and where its effects go."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from rig.lab.exo.behaviour import Behaviour, Timers
from rig.lab.exo.effects import Outbox
from rig.lab.exo.models import Model


@dataclass
class Context:
    """`node_id` is new at every start, as exo's is. All randomness and every id comes from `rng`."""

    name: str
    address: str
    behaviour: Behaviour
    timers: Timers
    rng: random.Random
    models: Mapping[str, Model]
    memory_bytes: int
    restarted: bool
    node_id: str = ""
    out: Outbox = field(default_factory=Outbox)

    def __post_init__(self) -> None:
        self.node_id = self.node_id or f"{self.rng.getrandbits(128):032x}"

    def new_id(self) -> str:
        """A UUID-shaped id."""
        h = f"{self.rng.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
