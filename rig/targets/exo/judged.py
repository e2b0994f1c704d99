"""What the analysis must know of exo: its keeper, its statuses, its rings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from rig.analysis.analyse import Analysis
from rig.analysis.intake.ticks import Index
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.judged import Judged
from rig.analysis.recovery.reigns import Reigns
from rig.journal.records import AnyRecord, Reachability
from rig.targets.exo.keeper.doubles import InstanceWatch
from rig.targets.exo.keeper.rules import Rules
from rig.targets.exo.keeper.statuses import StatusWatch
from rig.targets.exo.keeper.story import Story
from rig.targets.exo.keeper.tape import KeeperTape
from rig.targets.exo.rings import Apart, RingWatch


class ExoWatch:
    """`stories` and `apart` are there once `finish` was called."""

    def __init__(self, context: Context, reigns: Reigns) -> None:
        pace = context.settings.pace
        self.rules = Rules(pace)
        self.keeper = KeeperTape(self.rules, reigns)
        self.statuses = StatusWatch(self.rules)
        self.rings = RingWatch(pace)
        self.doubles = InstanceWatch(context)
        self.stories = list[Story]()
        self.apart = list[Apart]()

    def feed(self, record: AnyRecord) -> None:
        if not isinstance(record, Reachability):
            self.keeper.feed(record)
            self.statuses.feed(record)
            self.doubles.feed(record)
        self.rings.feed(record)

    def indices(self, run: Sequence[Index]) -> None:
        self.keeper.indices(run)

    def finish(self, end_t: float) -> None:
        self.keeper.end_t = max(self.keeper.end_t, end_t)
        self.stories = self.keeper.stories()
        self.apart = self.rings.found(end_t)

    def hint(self, model: str, from_t: float, to_t: float) -> str:
        """A ring of the model that did not come together in that time."""
        return "; ".join(
            f"{one.text} from {one.from_t:.1f} to {one.to_t:.1f} s"
            for one in self.apart
            if one.model == model and one.from_t <= to_t and from_t <= one.to_t
        )


def watched(analysis: Analysis) -> ExoWatch:
    """What exo's own checks judge."""
    own = analysis.watch.own
    assert isinstance(own, ExoWatch), "the run is not of exo"
    return own


def runners_of(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    runners = instance.get("runners")
    return cast("dict[str, Any]", runners) if isinstance(runners, dict) else {}


JUDGED: Final = Judged(watch=ExoWatch, workers=runners_of, worker="runner")
