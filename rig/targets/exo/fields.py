"""exo's keys in an inventory."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from rig.config.fields import AbsolutePath, ProcessRegex
from rig.config.process import Process
from rig.config.target_fields import TargetFields

API_PORT: Final = 52415  # unless it is told another


class ExoProcess(Process):
    home: AbsolutePath = Field(description="the absolute path of $EXO_HOME on the node")
    match: ProcessRegex = r"(python[0-9.]*|Python) .*-m exo|/bin/exo( |$)"

    section: ClassVar[str] = "exo"
    usual_pidfile: ClassVar[str] = "exo.pid"
    usual_log: ClassVar[str] = "exo_log/exo.log"

    @classmethod
    def is_worker(cls, command: str) -> bool:
        """exo's runners are multiprocessing spawn children of the main process; the resource tracker is none."""
        return "--multiprocessing-fork" in command and "resource_tracker" not in command


FIELDS: Final = TargetFields(process=ExoProcess, process_is="how exo is started and recognised, at least `home:`")
