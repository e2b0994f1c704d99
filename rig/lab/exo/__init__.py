"""The logic of an exo cluster without sockets, processes or clocks.

`node.NodeLogic` is one node: it is told the time and what happened, and answers with effects. `simulation` runs
several of them under virtual time in one process; `rig.lab.embedded.process` runs one in a real process.
"""
