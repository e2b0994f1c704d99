"""A scenario as it is written: steps with one key each. Durations are at pace 1, as everywhere.

Names given with `as` stand for deployments, for instances placed by hand and for nodes that were crashed. `model: 1` is
the first model of the workload, so that a scenario fits any target.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from rig.config.fields import Duration, Strict, Text
from rig.faults.plan.kind import EveryNode, Pair
from rig.faults.plan.registry import KINDS

NodeCount = Literal["all", "too-many"]


class Deploy(Strict):
    """`status` is the answer that is expected: 409 for a second deployment of a model."""

    model: int = Field(default=1, ge=1)
    as_: Text = Field(alias="as", description="a name for the deployment")
    min_nodes: int | NodeCount = 1
    status: Literal[200, 409] = 200


class Place(Strict):
    """Ask for an instance by hand, and wait until it is listed."""

    model: int = Field(default=1, ge=1)
    as_: Text = Field(alias="as", description="a name for the instance")
    min_nodes: int | NodeCount = 1


class Delete(Strict):
    """`of` names a deployment, or is `unknown`: one that does not exist."""

    of: Text
    status: Literal[200, 404] = 200


class DeleteInstance(Strict):
    """`of` names an instance placed by hand or the deployment whose instance is meant, or is `unknown`."""

    of: Text
    status: Literal[200, 404] = 200


class Lose(Strict):
    """Kill a worker of the deployment's new instance before it is ready, until the instance is gone."""

    of: Text


class Crash(Strict):
    """SIGKILL the target on a node and keep it down until `restart`.

    `host`: a node that `of` runs on; `free`: one that is neither that nor the master, where there is one.
    """

    node: Literal["master", "host", "free"]
    of: Text | None = None
    as_: Text = Field(alias="as", description="a name for what is down")


def _one_node(kind: str) -> str:
    """A kind that strikes one thing at a time."""
    known = [name for name, one in KINDS.items() if not isinstance(one.aim, Pair | EveryNode)]
    if kind not in known:
        raise ValueError(f"expected one of {', '.join(known)}, not {kind!r}")
    return kind


class Strike(Strict):
    """A fault of a kind of the fault plans, for `hold`; over when it is healed."""

    kind: Annotated[str, AfterValidator(_one_node)]
    node: Literal["master", "host", "free"] = "host"
    of: Text | None = None
    hold: Duration = 0.0


class Condition(Strict):
    """One of these must hold: within a time, or (`lasting`) all the time for so long."""

    placed: Text | None = (
        None  # the deployment has an instance that was not there when this step began, or the one before
    )
    serving: Text | None = None  # it has an instance, and every worker of it is ready
    alone: Text | None = None  # its model has exactly one instance
    refused: Text | None = None  # it cannot be placed, and says why
    gone: Text | None = None  # this instance (by hand), or what the deployment had, is not listed any more
    there: Text | None = None  # this instance (by hand), or what the deployment had, is still listed
    nothing_of: int | None = Field(default=None, ge=1)  # the model has no instance
    nodes: int | Literal["all", "fewer"] | None = None  # so many nodes are listed
    new_master: bool | None = None  # another node is master than when the step before began
    within: Duration = 120.0
    lasting: Duration | None = None

    @model_validator(mode="after")
    def _one(self) -> Condition:
        if len(self.given()) != 1:
            raise ValueError(f"expected exactly one of {', '.join(CONDITIONS)}")
        return self

    def given(self) -> list[str]:
        return [name for name in CONDITIONS if getattr(self, name) is not None]

    def text(self) -> str:
        name = self.given()[0]
        return f"{name.replace('_', ' ')} {getattr(self, name)}"


CONDITIONS = ("placed", "serving", "alone", "refused", "gone", "there", "nothing_of", "nodes", "new_master")


class Step(Strict):
    """Exactly one of these."""

    deploy: Deploy | None = None
    place: Place | None = None
    delete: Delete | None = None
    delete_instance: DeleteInstance | None = None
    lose: Lose | None = None
    crash: Crash | None = None
    restart: Text | None = None
    strike: Strike | None = None
    pause: Duration | None = None
    wait_for: Condition | None = None  # what the steps after it need; a scenario that does not get there is unknown
    expect: Condition | None = None  # what the target has promised; a scenario where it is not so has failed

    @model_validator(mode="after")
    def _one(self) -> Step:
        if len(self.given()) != 1:
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}")
        return self

    def given(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    def text(self) -> str:
        """One line, as a reader would say it."""
        name = self.given()[0]
        value: Any = getattr(self, name)
        if isinstance(value, Condition):
            how = f"for {value.lasting:g} s" if value.lasting is not None else f"within {value.within:g} s"
            return f"{name.replace('_', ' ')}: {value.text()}, {how}"
        if isinstance(value, Strict):
            said = value.model_dump(by_alias=True, exclude_defaults=True)
            return f"{name.replace('_', ' ')} " + ", ".join(f"{key} {item}" for key, item in said.items())
        return f"{name} {value:g} s" if isinstance(value, float) else f"{name} {value}"


class Stage(Strict):
    """How the embedded cluster is set for this scenario, where it is played on one."""

    load_time: Duration = Field(default=4.0, ge=0, le=600)


class Scenario(Strict):
    name: Text
    about: Text = Field(description="what is caused, and what must follow")
    nodes: int = Field(default=1, ge=1)  # at least so many
    faults: bool = False  # whether it harms nodes, which an inventory may forbid
    proves: list[Text] = Field(min_length=1, description="the checks that must pass, by name")
    embedded: Stage = Stage()
    models: list[Text] | None = Field(default=None, min_length=1)  # instead of the workload's: only played if embedded
    steps: list[Step] = Field(min_length=1, description="a list of steps, each with one key")
