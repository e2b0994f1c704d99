"""Every error the rig raises on purpose, in one tree.

    RigError                    one line for the user, one exit code
    ├── UsageError              exit 2: the command line
    ├── ConfigError             exit 2: a YAML file; carries file, line, field, and what was expected
    ├── NodeError               exit 3: something about one node
    │   ├── TransportError      nothing is known of the command: the node was lost, or could not be asked
    │   │   └── SshError        SSH failed: no connection, lost, authentication
    │   │       └── HostKeyError    the host key is not the expected one
    │   ├── CommandTimeout      the command did not end by its deadline
    │   ├── CommandFailed       the command itself ended non-zero (255 included)
    │   └── NodeNotReady        precheck: the node lacks what a run needs
    ├── LeaseError              exit 3: a live lease or a lock of somebody else stands in the way
    ├── FaultError              exit 3: a fault could not be struck, proved or healed
    ├── TargetError             exit 3: the system under test did not answer as its API should
    │   ├── TargetUnreachable   no answer at all: refused, reset, or none in time
    │   └── TargetMisread       an answer that is not understood: no JSON, or of another shape
    ├── JournalError            exit 3: results cannot be written or read
    └── ClusterError            exit 3: the embedded cluster could not be started or was lost

Errors of libraries are mapped to these once, at the edge where they appear, with `from`.
"""

from __future__ import annotations

from typing import Final

EXIT_PASS: Final = 0
EXIT_FAIL: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNKNOWN: Final = 3
EXIT_SIGINT: Final = 130
EXIT_SIGTERM: Final = 143


class RigError(Exception):
    """Base of all. `remedy`, when given, says what the user can do."""

    exit_code: int = EXIT_UNKNOWN

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  fix: {self.remedy}"


class UsageError(RigError):
    exit_code = EXIT_USAGE


class ConfigError(RigError):
    """A configuration file is wrong at a place that can be named."""

    exit_code = EXIT_USAGE

    def __init__(
        self,
        message: str,
        *,
        file: str,
        line: int | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        place = file if line is None else f"{file}:{line}"
        what = message if field is None else f"{field}: {message}"
        super().__init__(f"{place}: {what}", remedy=remedy)
        self.file = file
        self.line = line
        self.field = field


class NodeError(RigError):
    """Something about one node; `node` is its name in the inventory."""

    def __init__(self, node: str, message: str, *, remedy: str | None = None) -> None:
        super().__init__(f"{node}: {message}", remedy=remedy)
        self.node = node


class TransportError(NodeError):
    """The transport failed; nothing is known of the command."""


class SshError(TransportError):
    pass


class HostKeyError(SshError):
    pass


class CommandTimeout(NodeError):
    """The command did not end by its deadline. It may still be running on the node."""


class CommandFailed(NodeError):
    """The command ended with a status other than 0; 255 here is the command's own."""

    def __init__(self, node: str, command: str, status: int, stderr: str) -> None:
        tail = stderr.strip().splitlines()[-1:] or ["no message"]
        super().__init__(node, f"`{command}` ended with status {status}: {tail[0]}")
        self.command = command
        self.status = status
        self.stderr = stderr


class NodeNotReady(NodeError):
    pass


class LeaseError(RigError):
    pass


class FaultError(RigError):
    pass


class TargetError(RigError):
    pass


class TargetUnreachable(TargetError):
    """Nothing answered: refused, reset, or no answer in time."""


class TargetMisread(TargetError):
    """There was a good answer, but what it says is not understood."""


class JournalError(RigError):
    pass


class ClusterError(RigError):
    pass
