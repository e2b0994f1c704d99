"""`make wrong-pf`: the stock partition on a virtual Mac, then every wrong variant of it; each must be caught.

Exit status 1 when the stock script is faulted or a wrong one passes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from rig.config.inventory import Embedded
from tests.hosts.hosts import Hosts, running
from tests.mac.observing import NODE, PEER, Observed, observe, settle
from tests.mac.variants import VARIANTS, Variant, write

MACS = Embedded(nodes=3, hosts="namespaces", system="darwin")


def own_addresses(hosts: Hosts) -> str:
    return " ".join(address.partition("%")[0] for address in hosts.inventory.nodes[NODE].addresses)


def try_variant(hosts: Hosts, wanted: Variant | None, *, scene: str | None = None) -> Observed:
    folder = hosts.node_folder(NODE) / "tmp" / "faults"
    write(wanted, folder, own_addresses=own_addresses(hosts))
    settle(hosts)
    chosen = wanted.scene if wanted is not None else "stock" if scene == "stock" else "busy"
    return observe(hosts, folder, chosen)


def caught(wanted: Variant, observed: Observed) -> bool:
    return bool(wanted.by & observed.sorts())


def main() -> int:
    missed = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rig-mac-") as folder, running(MACS, Path(folder) / "c") as hosts:
        hosts.serve_echo(PEER)
        for scene in ("stock", "busy"):
            observed = try_variant(hosts, None, scene=scene)
            sound = observed.said == "healed" and not observed.seen
            missed += not sound
            line(f"(the stock script, {scene} Mac)", "sound" if sound else "FAULTED", observed)
        for wanted in VARIANTS:
            observed = try_variant(hosts, wanted)
            hit = caught(wanted, observed)
            missed += not hit
            line(wanted.name, "caught" if hit else "MISSED", observed)
    print(f"\n{len(VARIANTS)} wrong variants, {missed} missed or faulted; {time.monotonic() - begun:.0f} s")
    return 1 if missed else 0


def line(name: str, verdict: str, observed: Observed) -> None:
    said = observed.said + (f" ({observed.why[:70]})" if observed.why else "")
    print(f"{verdict:<8} {name:<52} script: {said}", flush=True)
    for text in observed.seen:
        print(f"{'':<9}{'':<53}seen: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
