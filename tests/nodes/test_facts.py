"""What one node can reach of another, asked on a real host."""

from __future__ import annotations

import socket

from rig.nodes.facts import reached_from
from rig.nodes.open import open_nodes
from tests.nodes.servers import SshServer, ssh_of


async def test_a_refused_connection_has_reached_the_machine(server: SshServer) -> None:
    with socket.socket(socket.AF_INET6) as bound, socket.create_server(("127.0.0.1", 0)) as api:
        bound.bind(("::1", 0))  # bound, but not listening: nobody else gets the port, and it refuses
        own = server.node()
        peer = server.node(
            ssh=ssh_of(own).model_copy(update={"port": bound.getsockname()[1]}),
            api=f"http://10.1.2.3:{api.getsockname()[1]}",
        ).model_copy(update={"addresses": ["::1", "127.0.0.1", "240.0.0.1"]})
        inventory = server.inventory(n1=own, n2=peer)
        async with open_nodes(inventory, names=["n1"]) as nodes:
            reached = await reached_from(nodes["n1"], inventory)
    assert reached == {"n2 at ::1": True, "n2 at 127.0.0.1": True, "n2 at 240.0.0.1": False}
