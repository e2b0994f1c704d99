"""The workload: which models are deployed, and the requests that are sent to them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from rig.config.fields import Duration, Strict, Text


class Model(Strict):
    """A deployment as it is posted, and this model's share of the load."""

    model: Text = Field(description="the id of a model, such as mlx-community/Qwen3-30B-A3B-4bit")
    sharding: Literal["Pipeline", "Tensor"] = "Pipeline"
    instance_meta: Literal["MlxRing", "MlxJaccl"] = "MlxRing"
    min_nodes: int = Field(default=1, ge=1)
    weight: float = Field(default=1.0, gt=0, le=1000)

    def request(self) -> dict[str, Any]:
        """The body of `POST /deployments`."""
        return {
            "model_id": self.model,
            "sharding": self.sharding,
            "instance_meta": self.instance_meta,
            "min_nodes": self.min_nodes,
        }


class Lengths(Strict):
    """Token counts: uniform between low and high (equal for a constant)."""

    low: int = Field(ge=1, le=1_000_000, description="the smallest count of tokens")
    high: int = Field(ge=1, le=1_000_000, description="the largest count of tokens")


class Arrivals(Strict):
    """closed: every client sends its next request `think` after the last one ended. Others are open loop."""

    kind: Literal["closed", "constant", "poisson"] = "closed"
    think: Duration = 0.0
    rate: float | None = Field(default=None, gt=0, le=10_000)  # requests a second, for open loop


class Deadlines(Strict):
    connect: Duration = Field(default=3.0, gt=0)
    progress: Duration = Field(default=120.0, gt=0)  # no token for so long: hung
    total: Duration = Field(default=300.0, gt=0)  # still going after so long: overdue (or hung, when not streamed)


class Workload(Strict):
    name: Text
    models: list[Model] = Field(min_length=1, description="a list of models, each with `- model: ID`")
    clients: int = Field(default=12, ge=1, le=4096)
    arrivals: Arrivals = Arrivals()
    prompt_tokens: Lengths = Lengths(low=16, high=128)
    output_tokens: Lengths = Lengths(low=8, high=48)
    deadlines: Deadlines = Deadlines()
    streamed_share: float = Field(default=0.75, ge=0, le=1)
    entry: list[str] | Literal["spread"] = "spread"  # names of entry nodes, or spread over all
    temperature: float | None = Field(default=None, ge=0, le=10)

    @field_validator("entry", mode="before")
    @classmethod
    def _entry(cls, value: Any) -> Any:
        """One message instead of one for each branch of the union."""
        if value == "spread" or (isinstance(value, list) and value and all(isinstance(name, str) for name in value)):  # pyright: ignore[reportUnknownVariableType] (any list)
            return value  # pyright: ignore[reportUnknownVariableType]
        raise ValueError("expected `spread`, or a list of names of nodes such as [node-1, node-2]")
