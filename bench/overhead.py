"""What observation and probing cost the nodes: requests a second and CPU, counted at the nodes.

    python -m bench.overhead [--seconds 20] [--json FILE]

An embedded cluster of three nodes at pace 1, without load. A proxy before each node counts what really reaches it. Four
stretches: nobody asks; the rig watches in calm weather; it watches as it does while a fault is in force; the same, and
one node stands still. CPU is that of the node's main process beyond what it uses when nobody asks, in percent of one
core. It is an emulated node that answers: exo's own cost of an answer is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from bench.table import conclude
from rig.cli.cluster import down, up
from rig.clock import RunClock
from rig.config.inventory import Inventory, Node
from rig.config.read import load_inventory, load_workload
from rig.faults.plan.read import load_plan
from rig.journal.records import AnyRecord, RequestEnded, RequestStarted
from rig.journal.write import Journal
from rig.load.prober import Prober
from rig.observe.observer import Observer
from rig.observe.own import own_health
from rig.run.deployments import DeploymentsPosted
from rig.run.settings import SoakSettings, paced, watching
from rig.targets.exo.api import Exo

LIMIT_PER_S: Final = 5.0
LIMIT_PERCENT: Final = 1.0
_REQUEST: Final = re.compile(rb"(?:GET|POST|DELETE|HEAD|PUT) \S+ HTTP/1\.1\r\n")
_WINDOW_S: Final = 10.0


class Counter:
    """A proxy before one node: every request that goes through is counted with its moment."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.moments: list[float] = []
        self._open: set[asyncio.Task[None]] = set()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._passed_on(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(inner_reader, writer), _pump(reader, inner_writer, self._count))

    def _count(self, data: bytes) -> None:
        self.moments += [time.monotonic()] * len(_REQUEST.findall(data))

    def rates(self, from_t: float, to_t: float) -> tuple[float, float]:
        """A second, on average and in the busiest ten seconds."""
        inside = [moment for moment in self.moments if from_t <= moment < to_t]
        most = max((sum(first <= other < first + _WINDOW_S for other in inside) for first in inside), default=0)
        return len(inside) / (to_t - from_t), most / min(_WINDOW_S, to_t - from_t)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, see: Callable[[bytes], None] | None = None
) -> None:
    try:
        while data := await reader.read(65536):
            if see is not None:
                see(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def _main(node: Node) -> psutil.Process:
    return psutil.Process(int(Path(node.exo.pid_path).read_text()))


async def _measure(inventory: Inventory, folder: Path, seconds: float) -> list[dict[str, Any]]:
    counters = {name: Counter(int(node.api.rsplit(":", 1)[1])) for name, node in inventory.nodes.items()}
    mains = {name: _main(node) for name, node in inventory.nodes.items()}
    settings = paced(
        inventory=inventory,
        workload=load_workload("chat"),
        plan=load_plan("keeper"),
        length_s=600.0,
        seed=1,
        folder=folder,
    )
    rows: list[dict[str, Any]] = []
    idle: dict[str, float] = {}

    async def stretch(what: str, standing: str | None = None) -> None:
        before = {name: sum(main.cpu_times()[:2]) for name, main in mains.items()}
        from_t = time.monotonic()
        await asyncio.sleep(seconds)
        to_t = time.monotonic()
        for name, main in mains.items():
            percent = (sum(main.cpu_times()[:2]) - before[name]) / (to_t - from_t) * 100
            beyond = percent - idle.setdefault(name, percent)
            mean, most = counters[name].rates(from_t, to_t)
            label = f"{name}, stands still" if name == standing else name
            measured = name != standing and what != "nobody asks"
            rows.append(
                {
                    "stretch": what, "node": label, "requests_per_s": round(mean, 2),
                    "busiest_10_s": round(most, 2), "cpu_percent": round(percent, 2),
                    "beyond_idle_percent": round(beyond, 2),
                    "met": (most <= LIMIT_PER_S and beyond < LIMIT_PERCENT) if measured else None,
                }
            )  # fmt: skip

    async with AsyncExitStack() as stack:
        for counter in counters.values():
            await stack.enter_async_context(counter.serving())
        entries = {name: counter.url for name, counter in counters.items()}
        await _deployed(settings, entries, folder)
        await stretch("nobody asks")
        stop = asyncio.Event()
        journal, target = Journal(folder, RunClock()), Exo()
        observer = Observer(target, entries, journal, connections={}, timing=watching(settings.pace), health=own_health)
        prober = Prober(
            settings.models, entries, journal, fast_s=settings.probe_fast_s, slow_s=settings.probe_slow_s,
            node_per_s=settings.probes_per_node_s, limit_s=settings.probe_limit_s, patience_s=settings.probe_patience_s,
        )  # fmt: skip
        running = [asyncio.create_task(observer.run(stop)), asyncio.create_task(prober.run(stop))]
        await asyncio.sleep(2.0)
        await stretch("calm")
        prober.fast, observer.attention = True, "sparing"
        await asyncio.sleep(3.0)
        await stretch("a fault in force")
        first = next(iter(mains))
        mains[first].suspend()
        try:
            await stretch("a fault in force, a node frozen", first)
        finally:
            mains[first].resume()
        stop.set()
        await asyncio.wait(running, timeout=10.0)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await target.close()
        journal.close()
    return rows


async def _deployed(settings: SoakSettings, entries: dict[str, str], folder: Path) -> None:
    """Post the workload's models and wait until a probe of each was answered."""
    setup = folder / "setup"
    setup.mkdir()
    target, journal, seen = Exo(), Journal(setup, RunClock()), set[str]()
    observer = Observer(target, entries, journal, connections={}, timing=watching(settings.pace), health=own_health)
    posted = DeploymentsPosted(
        target, entries, settings.workload.models, journal, observer.view, vanished_s=settings.vanished_s
    )
    await posted.post_all()
    models: dict[str, str] = {}
    served = asyncio.Event()

    def see(record: AnyRecord) -> None:
        if isinstance(record, RequestStarted):
            models[record.id] = record.model
        elif isinstance(record, RequestEnded) and record.outcome == "completed":
            seen.add(models[record.id])
            if seen >= set(settings.models):
                served.set()

    journal.subscribe(see)
    stop = asyncio.Event()
    prober = Prober(settings.models, entries, journal, fast_s=0.5)
    prober.fast = True
    running = asyncio.create_task(prober.run(stop))
    await asyncio.wait_for(served.wait(), 120)
    stop.set()
    await running
    await target.close()
    journal.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each stretch")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as name:
        folder = Path(name)
        (folder / "slow.yaml").write_text("name: slow\nembedded:\n  nodes: 3\n  behaviour: sound\n  pace: 1\n")
        cluster = folder / "c"
        up(inventory=str(folder / "slow.yaml"), for_="15m", folder=cluster, inert=None, foreground=False, as_json=True)
        try:
            rows = asyncio.run(_measure(load_inventory(str(cluster / "inventory.yaml")), folder, given.seconds))
        finally:
            down(folder=cluster)
    return conclude("Overhead on the nodes", rows, given.json)


if __name__ == "__main__":
    sys.exit(main())
