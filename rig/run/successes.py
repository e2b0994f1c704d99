"""The latest success of each model: who serves, and by which response, as the journal grows."""

from __future__ import annotations

from dataclasses import dataclass

from rig.journal.records import AnyRecord, RequestEnded, RequestStarted


@dataclass(frozen=True)
class Success:
    started_t: float
    ended_t: float
    response_id: str | None


class Successes:
    """A listener of the journal. Memory: the requests in flight and one success a model."""

    def __init__(self, models: list[str]) -> None:
        self._models = models
        self._in_flight: dict[str, str] = {}
        self.latest: dict[str, Success] = {}

    def apply(self, record: AnyRecord) -> None:
        if isinstance(record, RequestStarted):
            self._in_flight[record.id] = record.model
        elif isinstance(record, RequestEnded):
            model = self._in_flight.pop(record.id, None)
            if model is not None and record.outcome == "completed":
                self.latest[model] = Success(record.started_t, record.ended_t, record.response_id)

    def all_since(self, t: float) -> bool:
        """Whether every model has completed a request that started at `t` or later."""
        return not self.silent_since(t)

    def silent_since(self, t: float) -> list[str]:
        """The models that completed nothing that started at `t` or later."""
        found = {model: self.latest.get(model) for model in self._models}
        return [model for model, success in found.items() if success is None or success.started_t < t]

    def response_ids(self) -> list[str]:
        return [one.response_id for one in self.latest.values() if one.response_id is not None]
