"""The workload: which models are deployed, and the requests that are sent to them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rig.config.fields import Duration, Strict


class Model(Strict):
    """A deployment as it is posted, and this model's share of the load."""

    model: str
    sharding: Literal["Pipeline", "Tensor"] = "Pipeline"
    instance_meta: Literal["MlxRing", "MlxJaccl"] = "MlxRing"
    min_nodes: int = Field(1, ge=1)
    weight: float = Field(1.0, gt=0)

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

    low: int = Field(ge=1)
    high: int = Field(ge=1)


class Arrivals(Strict):
    """closed: every client sends its next request `think` after the last one ended. Others are open loop."""

    kind: Literal["closed", "constant", "poisson"] = "closed"
    think: Duration = 0.0
    rate: float | None = None  # requests a second, for open loop


class Deadlines(Strict):
    connect: Duration = 3.0
    progress: Duration = 120.0  # no token for so long: hung
    total: Duration = 300.0  # still going after so long: overdue (or hung, when not streamed)


class Workload(Strict):
    name: str
    models: list[Model] = Field(min_length=1)
    clients: int = Field(12, ge=1, le=4096)
    arrivals: Arrivals = Arrivals()
    prompt_tokens: Lengths = Lengths(low=16, high=128)
    output_tokens: Lengths = Lengths(low=8, high=48)
    deadlines: Deadlines = Deadlines()
    streamed_share: float = Field(0.75, ge=0, le=1)
    entry: list[str] | Literal["spread"] = "spread"  # names of entry nodes, or spread over all
    temperature: float | None = None
