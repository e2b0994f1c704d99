"""`rig init HOST…`: look at the cluster and write a commented inventory of it."""

from __future__ import annotations

import os
from pathlib import Path

from rig.config.read import load_inventory
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, SshError, UsageError
from rig.targets.registry import DEFAULT
from rig.targets.surveying import survey_of


def init(*, hosts: list[str], key: Path | None, out: Path, force: bool, target: str = DEFAULT) -> int:
    """Exit 0 when every host was reached, 3 when some were not (the others are written)."""
    if out.exists() and not force:
        raise UsageError(f"{out} exists", remedy="--out another file, or --force")
    found = survey_of(target).survey(hosts, key, out.stem)
    for lost in found.lost:
        print(lost)
    if not found.reached:
        raise SshError("none of the hosts", "nothing was written")
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    temporary.write_text(found.yaml)
    temporary.replace(out)
    load_inventory(str(out.absolute()))
    print(f"wrote {out}: {found.reached} of {len(hosts)} hosts. Read it, then: rig doctor --inventory {out}")
    for unknown in found.unknown:
        print(unknown)
    return EXIT_UNKNOWN if found.lost else EXIT_PASS
