"""The workload: which models are deployed, and the requests that are sent to them."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, field_validator

from rig.config.fields import Duration, Strict, Text

MAX_CONCURRENCY: Final = 4096
"""Requests in flight at once, at most, whatever a workload asks for."""


class Model(Strict):
    """A model, and its share of the load. A target's own subclass has what a deployment of it needs."""

    model: Text = Field(description="the id of a model, such as mlx-community/Qwen3-30B-A3B-4bit")
    weight: float = Field(default=1.0, gt=0, le=1000)

    @property
    def nodes_needed(self) -> int:
        return 1

    @property
    def past_filters(self) -> bool:
        """Whether its nodes talk to each other in a way that no packet filter sees (RDMA)."""
        return False

    def request(self, nodes: int | None = None) -> dict[str, Any]:
        """The body that deploys it, on so many nodes at least (None: as the workload says)."""
        del nodes
        return {"model": self.model}


class Lengths(Strict):
    """Token counts between low and high (equal for a constant).

    `uniform` draws them evenly; `normal` and `lognormal` from a distribution with this mean and standard deviation, by
    default the middle of the range and a quarter of its width. What falls outside the range is drawn again.
    """

    low: int = Field(ge=1, le=1_000_000, description="the smallest count of tokens")
    high: int = Field(ge=1, le=1_000_000, description="the largest count of tokens")
    shape: Literal["uniform", "normal", "lognormal"] = "uniform"
    mean: float | None = Field(default=None, gt=0, le=1_000_000)
    deviation: float | None = Field(default=None, gt=0, le=1_000_000)


class Stage(Strict):
    """So long at this rate; with `to`, from this rate to that one, evenly (a ramp)."""

    duration: Duration = Field(gt=0, description="how long the stage lasts, such as 5m")
    rate: float = Field(ge=0, le=10_000, description="requests a second")
    to: float | None = Field(default=None, ge=0, le=10_000)


class Arrivals(Strict):
    """When requests are sent.

    closed: every client sends its next request `think` after the last one ended. The others are open loop, at `rate`
    or in `stages` (the last rate goes on after them): constant (even spacing), poisson (random, independent), gamma
    (random with `burstiness`: 1 is poisson, less is burstier), burst (`burst` requests at once), replay (the times and
    lengths of a `trace`, from its beginning again when it is over).

    `max_concurrency` bounds how many requests of an open loop are in flight: what is due beyond it waits, counts from
    when it was due all the same, and the report says so.
    """

    kind: Literal["closed", "constant", "poisson", "gamma", "burst", "replay"] = "closed"
    think: Duration = 0.0
    rate: float | None = Field(default=None, gt=0, le=10_000)  # requests a second, for open loop
    stages: list[Stage] | None = Field(default=None, min_length=1, max_length=1000)
    burstiness: float | None = Field(default=None, gt=0, le=1000)  # the shape of the gamma distribution
    burst: int | None = Field(default=None, ge=2, le=4096)  # requests that come at once
    trace: Text | None = None  # a JSONL file: timestamp (ms), input_length, output_length
    speed: float = Field(default=1.0, gt=0, le=1000)  # of a replay
    max_concurrency: int = Field(default=MAX_CONCURRENCY, ge=1, le=MAX_CONCURRENCY)  # for open loop


class Deadlines(Strict):
    connect: Duration = Field(default=3.0, gt=0)
    progress: Duration = Field(default=120.0, gt=0)  # no token for so long: hung
    total: Duration = Field(default=300.0, gt=0)  # still going after so long: overdue (or hung, when not streamed)


class Objectives(Strict):
    """What a request must meet to count as good: every one of these that is given. TTFT and E2EL count from the start,
    or in open loop from when it was due; ITL is the request's mean time per token after the first."""

    ttft: Duration | None = Field(default=None, gt=0)
    itl: Duration | None = Field(default=None, gt=0)
    e2el: Duration | None = Field(default=None, gt=0)


class Workload(Strict):
    name: Text
    models: list[Model] = Field(min_length=1, description="a list of models, each with `- model: ID`")
    clients: int = Field(default=12, ge=1, le=MAX_CONCURRENCY)  # of a closed loop
    arrivals: Arrivals = Arrivals()
    prompt_tokens: Lengths = Lengths(low=16, high=128)
    output_tokens: Lengths = Lengths(low=8, high=48)
    pairs: Text | None = None  # a JSONL file of input_length and output_length, drawn together instead of the above
    objectives: Objectives = Objectives()
    deadlines: Deadlines = Deadlines()
    streamed_share: float = Field(default=0.75, ge=0, le=1)
    entry: list[str] | Literal["spread"] = "spread"  # names of entry nodes, or spread over all
    temperature: float | None = Field(default=None, ge=0, le=10)
    canaries: float = Field(default=0.1, ge=0, le=1)  # this share of the requests has a known answer
    canary_modes: list[Literal["json", "tools"]] = Field(default_factory=list[Literal["json", "tools"]])

    @property
    def most_in_flight(self) -> int:
        """How many requests of the load can be on their way at once."""
        return self.clients if self.arrivals.kind == "closed" else self.arrivals.max_concurrency

    @field_validator("entry", mode="before")
    @classmethod
    def _entry(cls, value: Any) -> Any:
        """One message instead of one for each branch of the union."""
        if value == "spread" or (isinstance(value, list) and value and all(isinstance(name, str) for name in value)):  # pyright: ignore[reportUnknownVariableType] (any list)
            return value  # pyright: ignore[reportUnknownVariableType]
        raise ValueError("expected `spread`, or a list of names of nodes such as [node-1, node-2]")
