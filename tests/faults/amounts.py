"""Settings of a kind for nodes in namespaces, with small amounts: the machine runs other things as well."""

from __future__ import annotations

from rig.faults.plan.kind import KindPlan
from rig.faults.plan.plan import settings_of
from rig.faults.plan.registry import KINDS
from tests.faults.network import PEER4

SMALL: dict[str, object] = {
    "leave": 2**20, "most": 24 * 2**20, "load": 1, "loss": 50, "bandwidth": 256, "delay": 0.1,
    "resolvers": [PEER4],
}  # fmt: skip


def small(kind: str, **more: object) -> KindPlan:
    """`more` are further settings, as far as the kind has them."""
    known = KINDS[kind].settings.model_fields
    return settings_of(kind, **{name: value for name, value in (SMALL | more).items() if name in known})
