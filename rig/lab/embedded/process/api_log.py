"""The file in which a node keeps the events that its API has applied: the log of `GET /events`, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rig.lab.embedded.process.files import EventLog
from rig.lab.exo.event_views import Json, events_from
from rig.lab.exo.messages import Session
from rig.lab.exo.models import Model
from rig.lab.exo.replica import Replica


class ApiLog:
    """Follows a node's log by session and index; another session, or a log without its beginning, is a new file."""

    def __init__(self, home: Path, models: Mapping[str, Model]) -> None:
        self._file = EventLog(home, "api")
        self._file.open()
        self._models = models
        self._session: Session | None = None
        self._next = 0

    def follow(self, replica: Replica) -> None:
        """Write what was applied since the last call."""
        if replica.session != self._session or replica.next_index < self._next:
            if self._next:
                self._file.close()
                self._file.open()
            self._session, self._next = replica.session, 0
        event: Json | None
        for event in events_from(replica, self._models, self._next):
            self._file.append(event)
            self._next += 1

    def flush(self) -> None:
        self._file.flush()
