"""The keys of an OpenAI-compatible server in an inventory. Each node of it is one replica."""

from __future__ import annotations

from typing import ClassVar, Final

from rig.config.process import Process
from rig.config.target_fields import TargetFields


class ServerProcess(Process):
    section: ClassVar[str] = "server"
    usual_pidfile: ClassVar[str] = "server.pid"
    usual_log: ClassVar[str] = "server.log"


FIELDS: Final = TargetFields(
    process=ServerProcess,
    process_is="how the server is started and recognised, at least `home:` and `match:`",
    plan="servers",
    workload="local-chat",
)
