"""The target's processes on a node, as an inventory describes them, whatever the target."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rig.config.fields import AbsolutePath, ProcessRegex, Strict, Text


class Process(Strict):
    """How the target is started, stopped and recognised on a node. Commands are run by `sh -c` on the node.

    `match` is an extended regular expression that the command line of the main process must contain: a pid in `pidfile`
    whose command does not match is never signalled. `hold`/`release` keep a supervisor from restarting it at once.
    A target's own subclass has its defaults.
    """

    home: AbsolutePath = Field(description="the absolute path of the folder where the target keeps its files")
    pidfile: AbsolutePath | None = None
    log: AbsolutePath | None = None
    match: ProcessRegex = Field(description="an extended regular expression for the main process's command line")
    start: Text | None = None  # None: how to restart it is not known; crash faults are refused
    stop: Text | None = None
    hold: Text | None = None
    release: Text | None = None
    command: Text | None = None  # its own command line; `rig bootstrap` makes a launchd daemon or systemd unit of it

    section: ClassVar[str] = "process"  # its key in the inventory, by which messages call it as well
    worker: ClassVar[str] = "worker"  # what messages call a process that works for an instance
    peer_port: ClassVar[int | None] = None  # of its API, for its peers; None: that for the controller
    usual_pidfile: ClassVar[str] = "pid"  # below `home`
    usual_log: ClassVar[str] = "log"

    @classmethod
    def is_worker(cls, command: str) -> bool:
        """Whether a child of the main process that was started so works for an instance."""
        del command
        return False

    @property
    def pid_path(self) -> str:
        return self.pidfile or f"{self.home}/{self.usual_pidfile}"

    @property
    def log_path(self) -> str:
        return self.log or f"{self.home}/{self.usual_log}"
