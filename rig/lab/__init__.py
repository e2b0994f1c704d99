"""The lab: stand-ins for a cluster, and what judges the rig by them. It depends on the product, never the reverse.

- `embedded`: the *embedded cluster*: every node is processes of the operating system.
- `simulated`: the *simulated cluster*: the same logic under virtual time, in one process.
- `exo`: what an exo node does, as pure logic; both clusters run it.
- `hosts`: nodes in network namespaces of their own; `mac`: the *virtual Mac*, what macOS answers on such a node.
- `ledger`: what a cluster records of itself; `audit`: the journal of a run against it.
"""
