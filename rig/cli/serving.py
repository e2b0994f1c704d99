"""Waiting until models serve, for a rehearsal: only a served request shows that they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rig.clock import RunClock
from rig.errors import RigError
from rig.injection.aim import InstancesNow
from rig.journal.write import Journal
from rig.load.prober import Prober
from rig.soak.successes import Successes

SERVE_LIMIT_S: Final = 180.0  # a node timed out, its instance deleted and placed again, and its nodes connected
_PROBE_S: Final = 1.0
_LOOK_S: Final = 0.1
_SAY_S: Final = 5.0


async def until_serving(
    models: Sequence[str],
    entries: Mapping[str, str],
    instances: InstancesNow,
    stop: asyncio.Event,
    say: Callable[[str], None],
    *,
    limit_s: float = SERVE_LIMIT_S,
) -> list[str]:
    """The models that did not serve within `limit_s`, or until `stop`; empty when all do.

    Each must complete a request sent from now on, through any of the `entries` (API addresses by node), and be listed
    by `instances`, whose view may lag. `say` is told every few seconds what is waited for.
    """
    if not models:
        return []
    clock = RunClock()
    with TemporaryDirectory(prefix="rig-serving-") as folder:
        journal, successes = Journal(Path(folder), clock), Successes(list(models))
        journal.subscribe(successes.apply)
        prober = Prober(list(models), entries, journal, fast_s=_PROBE_S, limit_s=limit_s)
        prober.fast = True
        probing = asyncio.create_task(prober.run(asyncio.Event()))
        said_t = clock.now()
        try:
            while missing := successes.silent_since(0.0) or await _unlisted(models, instances):
                now = clock.now()
                if stop.is_set() or now >= limit_s or probing.done():
                    return missing
                if now - said_t >= _SAY_S:
                    say(f"waiting until {', '.join(missing)} serve ({now:.0f} of at most {limit_s:.0f} s)")
                    said_t = now
                await asyncio.sleep(_LOOK_S)
            return []
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
            journal.close()


async def _unlisted(models: Sequence[str], instances: InstancesNow) -> list[str]:
    try:
        listed = {one.model for one in await instances() if one.workers}
    except RigError:
        return list(models)
    return [model for model in models if model not in listed]
