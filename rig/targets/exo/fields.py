"""exo's keys in an inventory and in a workload."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from rig.config.fields import AbsolutePath, ProcessRegex
from rig.config.process import Process
from rig.config.target_fields import TargetFields
from rig.config.workload import Model

API_PORT: Final = 52415  # unless it is told another


class ExoProcess(Process):
    home: AbsolutePath = Field(description="the absolute path of $EXO_HOME on the node")
    match: ProcessRegex = r"(python[0-9.]*|Python) .*-m exo|/bin/exo( |$)"

    section: ClassVar[str] = "exo"
    worker: ClassVar[str] = "runner"
    peer_port: ClassVar[int | None] = API_PORT
    usual_pidfile: ClassVar[str] = "exo.pid"
    usual_log: ClassVar[str] = "exo_log/exo.log"

    @classmethod
    def is_worker(cls, command: str) -> bool:
        """exo's runners are multiprocessing spawn children of the main process; the resource tracker is none."""
        return "--multiprocessing-fork" in command and "resource_tracker" not in command


class ExoModel(Model):
    sharding: Literal["Pipeline", "Tensor"] = "Pipeline"
    instance_meta: Literal["MlxRing", "MlxJaccl"] = "MlxRing"
    min_nodes: int = Field(default=1, ge=1)

    @property
    def nodes_needed(self) -> int:
        return self.min_nodes

    @property
    def past_filters(self) -> bool:
        return self.instance_meta == "MlxJaccl"

    def request(self, nodes: int | None = None) -> dict[str, Any]:
        """The body of `POST /deployments`."""
        return {
            "model_id": self.model,
            "sharding": self.sharding,
            "instance_meta": self.instance_meta,
            "min_nodes": self.min_nodes if nodes is None else nodes,
        }


FIELDS: Final = TargetFields(
    process=ExoProcess,
    process_is="how exo is started and recognised, at least `home:`",
    model=ExoModel,
    roles=frozenset({"master", "runner"}),
    plan="keeper",
)
