"""The lives of instances and deployments in one session, out of its entries. Pure.

Whose an instance is: the keeper's, when a deployment names it after it was made; somebody's by hand, when the journal
has the call that asked for it; carried, when the session began with it; otherwise it is not known, as when views cannot
tell whether it was there before the session or was made in its first moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from rig.journal.records import ApiCall
from rig.targets.exo.keeper.chronicle import CHANGES, Chronicle, Entry

Whose: TypeAlias = Literal["keeper", "hand", "carried", "unknown"]
_SERVING: Final = frozenset({"RunnerReady", "RunnerRunning"})
_CLOSE: Final = _SERVING | {"RunnerLoaded", "RunnerWarmingUp", "RunnerFailed"}
"""A runner that crashes on each request is ready for a moment only: after a warm-up, and before it fails."""


@dataclass(slots=True, eq=False)
class Life:
    """One instance. `made` is None for one that was carried over; `ready` None: not yet, or not known (`carried`)."""

    id: str
    model: str
    runners: frozenset[str]
    made: Entry | None
    deployment: str | None = None
    whose: Whose = "unknown"
    ready: Entry | None = None
    was_ready: bool = False
    came_close: bool = False  # one of its runners was seen so that it may have been ready a moment before or after
    gone: Entry | None = None
    failed: bool = False  # one of its runners has said so of itself
    nodes: frozenset[str] = frozenset()  # their ids
    since: int = 0  # of one that was carried over later than at the beginning: the order of the entry that tells of it

    @property
    def order(self) -> int:
        """Of its making; before everything where it was carried over."""
        return -1 if self.made is None else self.made.order

    def alive_at(self, order: int) -> bool:
        return self.since <= order and self.order <= order and (self.gone is None or self.gone.order > order)


@dataclass(slots=True, eq=False)
class Deployed:
    """One deployment. `made` is None for one that was carried over."""

    id: str
    model: str
    made: Entry | None
    min_nodes: int = 1
    error: str | None = None  # the reason that stands, as the session goes on
    carried_error: bool = False  # one stood when the session began
    gone: Entry | None = None
    from_before: bool = False  # it was there before the run: what its placements went through is not known
    refusals: list[tuple[Entry, str]] = field(default_factory=list[tuple[Entry, str]])
    placements: list[Life] = field(default_factory=list[Life])

    def stands_at(self, order: int) -> bool:
        return (self.made is None or self.made.order <= order) and (self.gone is None or self.gone.order > order)


@dataclass
class Story:
    chronicle: Chronicle
    lives: dict[str, Life] = field(default_factory=dict[str, Life])
    deployments: dict[str, Deployed] = field(default_factory=dict[str, Deployed])
    changes: list[Entry] = field(default_factory=list[Entry])
    named: dict[str, str] = field(default_factory=dict[str, str])
    """Instances that a deployment named before they were listed, as polls of two lists may show them."""
    calls: Sequence[ApiCall] = ()

    def of_model(self, model: str) -> list[Life]:
        return [life for life in self.lives.values() if life.model == model]

    def deployed_at(self, model: str, order: int) -> Deployed | None:
        return next((d for d in self.deployments.values() if d.model == model and d.stands_at(order)), None)

    def surely_there(self, life: Life, entry: Entry) -> bool:
        """By its order; but views are asked for one after the other: what they show to go next may have gone before."""
        going = not self.chronicle.exact and life.gone is not None and life.gone.span.after_t < entry.span.by_t
        return life.alive_at(entry.order) and not going

    def doubtful(self) -> list[Life]:
        """Those that were there before the session, or were placed in its first moment."""
        return [life for life in self.lives.values() if life.made is None and life.whose == "unknown"]

    def said_between(self, first: int, second: int, but: Deployed | None = None) -> int:
        """How many placements and refusals of other deployments came between two places in the order."""
        others = [d for d in self.deployments.values() if d is not but]
        placed = sum(first < life.order < second for d in others for life in d.placements)
        return placed + sum(first < refusal.order < second for d in others for refusal, _ in d.refusals)

    def placements(self) -> list[Life]:
        """The keeper's, in their order."""
        made = [(life.made.order, life) for life in self.lives.values() if life.made and life.whose == "keeper"]
        return [life for _, life in sorted(made, key=lambda item: item[0])]


def tell(chronicle: Chronicle, calls: Sequence[ApiCall], hand_s: float) -> Story:
    """`calls` are the rig's own, `hand_s` within how long an instance asked for by hand appears."""
    story = Story(chronicle, calls=calls)
    runner_of: dict[str, Life] = {}
    status: dict[str, str] = {}
    history = chronicle.history
    for entry in chronicle.entries:
        if history and entry.order >= history:
            _forget(story)
            history = 0
        match entry.name:
            case "StateCarried":
                _carry(story, entry, runner_of, status)
            case "InstanceCreated":
                life = _life(str(entry.get("instance")), entry.data, entry)
                story.lives[life.id] = life
                runner_of |= dict.fromkeys(life.runners, life)
                _placed(story, story.named.pop(life.id, None), life)
            case "InstanceDeleted":
                gone = story.lives.get(str(entry.get("instance")))
                if gone is not None and gone.gone is None:
                    gone.gone = entry
            case "RunnerStatusUpdated":
                _runner(entry, runner_of, status)
            case name if name in CHANGES:
                story.changes.append(entry)
            case name if name.startswith("Deployment"):
                _deployment(story, entry)
            case _:
                pass
    if history:
        _forget(story)
    for life in story.lives.values():
        _by_hand(life, calls, hand_s)
    return story


def _forget(story: Story) -> None:
    """What came before the run is how things stood at its beginning, as if carried over."""
    story.lives = {name: life for name, life in story.lives.items() if life.gone is None}
    story.deployments = {name: one for name, one in story.deployments.items() if one.gone is None}
    story.changes.clear()
    for life in story.lives.values():
        life.made, life.ready, life.whose = None, None, "carried"
    for deployed in story.deployments.values():
        deployed.made = None
        deployed.refusals.clear()
        deployed.placements.clear()
        deployed.from_before = True


def _carry(story: Story, entry: Entry, runner_of: dict[str, Life], status: dict[str, str]) -> None:
    status.update({str(name): str(value) for name, value in _mapping(entry.data.get("runners")).items()})
    doubtful: list[str] = entry.data.get("doubtful") or []
    for name, item in _mapping(entry.data.get("instances")).items():
        before = story.lives.get(name)
        if before is not None and before.gone is None:
            continue
        if before is not None:  # it went and came back: a split is over, and the other side's state is seen
            story.lives[f"{name}, which went"] = before
        life = _life(name, _mapping(item), None)
        life.whose = "unknown" if name in doubtful else "carried"
        life.since = entry.order
        life.was_ready = bool(life.runners) and all(status.get(runner) in _SERVING for runner in life.runners)
        story.lives[name] = life
        runner_of |= dict.fromkeys(life.runners, life)
    for name, item in _mapping(entry.data.get("deployments")).items():
        data = _mapping(item)
        deployed = _deployed(name, data, None)
        deployed.error = data.get("error")
        deployed.carried_error = deployed.error is not None
        story.deployments[name] = deployed
        held = story.lives.get(str(data.get("instance")))
        if held is not None:
            held.deployment = name


def _runner(entry: Entry, runner_of: dict[str, Life], status: dict[str, str]) -> None:
    runner = str(entry.get("runner"))
    status[runner] = str(entry.get("status"))
    life = runner_of.get(runner)
    if life is None or not life.runners:
        return
    life.failed = life.failed or entry.get("status") == "RunnerFailed"
    if life.was_ready:
        return
    life.came_close = life.came_close or status[runner] in _CLOSE
    if all(status.get(one) in _SERVING for one in life.runners):
        life.ready, life.was_ready = entry, True


def _deployment(story: Story, entry: Entry) -> None:
    name, instance = str(entry.get("deployment")), entry.get("instance")
    deployed = story.deployments.get(name)
    if entry.name == "DeploymentCreated":
        story.deployments[name] = _deployed(name, entry.data, entry)
        return
    if deployed is None:
        return
    if entry.name == "DeploymentDeleted":
        deployed.gone = deployed.gone or entry
    elif (error := entry.get("error")) is not None:
        deployed.refusals.append((entry, error))
        deployed.error = error
    elif instance is not None and instance in story.lives:
        _placed(story, name, story.lives[instance])
    elif instance is not None:
        story.named[instance] = name


def _placed(story: Story, deployment: str | None, life: Life) -> None:
    """The deployment names the instance: what was made for it is the keeper's."""
    deployed = story.deployments.get(deployment or "")
    if deployed is None:
        return
    deployed.error = None
    if life.made is not None:
        life.deployment, life.whose = deployed.id, "keeper"
        deployed.placements.append(life)


def _by_hand(life: Life, calls: Sequence[ApiCall], hand_s: float) -> None:
    """An adopted instance is named by a deployment as well: a call for it that fits goes before."""
    if life.made is None:
        return
    span = life.made.span
    for call in calls:
        asked = call.what == "place" and call.model == life.model
        fits = asked and call.asked_t <= span.by_t and span.after_t <= call.t + hand_s
        if fits and (life.whose != "keeper" or life.id == call.subject):
            life.whose = "hand"
            return


def _life(name: str, data: dict[str, Any], made: Entry | None) -> Life:
    runners = _mapping(data.get("runners"))
    held = frozenset(str(runner) for runner in runners.values())
    return Life(name, str(data.get("model")), held, made, nodes=frozenset(runners))


def _deployed(name: str, data: dict[str, Any], made: Entry | None) -> Deployed:
    least = data.get("min_nodes")
    return Deployed(name, str(data.get("model")), made, min_nodes=least if isinstance(least, int) else 1)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
