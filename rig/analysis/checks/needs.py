"""Which of a target's answers each check goes by. One of them that was not understood makes the check unknown.

Every check that is not a target's own stands here, also with nothing: what is forgotten would pass blindly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NOTHING: Final = frozenset[str]()

NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "views-agree": frozenset({"nodes", "instances", "deployments"}),
    "one-master": _NOTHING,
    "no-ghost": frozenset({"node_id", "nodes"}),
    "no-zombie": frozenset({"nodes", "instances"}),
    "no-endless-election": _NOTHING,
    "nobody-else-died": _NOTHING,
    "nothing-left-behind": frozenset({"instances"}),
    "idle-is-idle": _NOTHING,
    "memory-given-back": frozenset({"instances", "memory"}),
    "speed-is-back": _NOTHING,
    "catches-up": frozenset({"event_index"}),
    "faults-effective": _NOTHING,
    "faults-healed": _NOTHING,
    "every-kind-struck": _NOTHING,
    "exposure": _NOTHING,
    "recovered": _NOTHING,
    "time-to-serve": _NOTHING,
    "no-request-lost": _NOTHING,
    "no-silent-hang": _NOTHING,
    "no-cut-stream": _NOTHING,
    "no-empty-answer": _NOTHING,
    "no-probe-cut": _NOTHING,
    "answers-unchanged": _NOTHING,
    "no-cross-talk": _NOTHING,
    "replicas-agree": _NOTHING,
    "answers-well-formed": _NOTHING,
    "accounting": _NOTHING,
    "baseline-clean": _NOTHING,
    "calm-errors": _NOTHING,
    "run-finished": _NOTHING,
    "activities-alive": _NOTHING,
    "controller-sound": _NOTHING,
    "journal-sound": _NOTHING,
    "load-on-time": _NOTHING,
}
