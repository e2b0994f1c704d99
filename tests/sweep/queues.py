"""The `tc` of a node on a kernel without netem: as on embedded hosts, delay lines do what is asked of it.

    python -m tests.sweep.queues SOCKET

Runs in the node's network and answers the `tc` that is first on the node's PATH. Prints `ready`.
"""

from __future__ import annotations

import asyncio
import sys

from rig.lab.embedded.machine.answering import Answering
from rig.lab.hosts.tc import Tc


async def main(control: str) -> None:
    server = await Answering({"tc": Tc().run}).serve(control)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
