"""What in an answer of exo's API is missing or not as it is known, as sentences. Pure.

`rig.targets.exo.shapes` reads leniently: what it cannot find is left out. What is left out without a word would make
the rig blind, and its checks pass for want of anything to look at. Each answer that could be parsed is therefore looked
through once more. A key that is new is no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from rig.targets.exo import shapes
from rig.targets.exo.views import InstanceView
from rig.targets.views import DeploymentView

_MOST: Final = 5  # sentences of one answer
_SUBJECTS: Final = {
    "InstanceCreated": "instance",
    "InstanceDeleted": "instance",
    "RunnerStatusUpdated": "runner",
    "NodeTimedOut": "node",
}
"""Under which key an event must say whom it is about; one of a deployment says the deployment."""
_RUNNER_STATUS: Final = re.compile(r"Runner[A-Z]\w*")


def of(path: str, raw: Any) -> tuple[str, ...]:
    """Of the answer to a poll, which `shapes` has parsed without an error."""
    look = _LOOKS.get(path)
    found = [] if look is None else list(look(raw))
    return (*found[:_MOST], *([f"and {len(found) - _MOST} more"] if len(found) > _MOST else []))


def instance(name: str | None, view: InstanceView) -> Iterator[str]:
    if lacking := [key for key in ("model", "runners") if not view[key]]:
        yield f"instance {name} has no {' and no '.join(lacking)}"


def runner_status(name: str | None, status: str) -> Iterator[str]:
    if _RUNNER_STATUS.fullmatch(status) is None:
        yield f"runner {name} has the status {status!r}"


def deployment(name: str | None, view: DeploymentView, *, with_status: bool) -> Iterator[str]:
    lacking = [key for key in ("model", "status") if not view[key] and (with_status or key != "status")]
    if lacking:
        yield f"deployment {name} has no {' and no '.join(lacking)}"


def event(name: str, data: dict[str, Any]) -> Iterator[str]:
    """Of an entry of the event log, in the form of `rig.targets.exo.events`."""
    subject = "deployment" if name.startswith("Deployment") else _SUBJECTS.get(name)
    if subject is None:
        return
    known = data.get(subject)
    if not isinstance(known, str):
        yield f"{name} of nobody"
    elif name == "InstanceCreated":
        yield from instance(known, cast("InstanceView", data))
    elif name == "DeploymentCreated":
        yield from deployment(known, cast("DeploymentView", data), with_status=False)
    elif name == "RunnerStatusUpdated":
        yield from runner_status(known, str(data.get("status")))


def _instances(raw: Any) -> Iterator[str]:
    for name, view in shapes.instances(raw).items():
        yield from instance(name, view)


def _runners(raw: Any) -> Iterator[str]:
    for name, status in shapes.runners(raw).items():
        yield from runner_status(name, status)


def _deployments(raw: Any, *, with_status: bool) -> Iterator[str]:
    for name, view in shapes.deployments(raw).items():
        yield from deployment(name, view, with_status=with_status)


def _topology(raw: Any) -> Iterator[str]:
    yield from (f"the topology has no {key}" for key in ("nodes", "connections") if key not in (raw or {}))


def _memory(raw: Any) -> Iterator[str]:
    nodes = cast("dict[str, Any]", raw or {})
    if any(nodes.values()) and not shapes.memory(raw):
        yield "no node's memory has ramAvailable"


_LOOKS: Final[dict[str, Callable[[Any], Iterator[str]]]] = {
    "/state/instances": _instances,
    "/state/runners": _runners,
    "/deployments": lambda raw: _deployments(raw, with_status=True),
    "/state/deployments": lambda raw: _deployments(raw, with_status=False),
    "/state/topology": _topology,
    "/state/nodeMemory": _memory,
}
