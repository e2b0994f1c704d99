"""An emulated cluster and the rig itself under virtual time, in one process: hours of a soak in seconds, from a seed.

The rig's own code runs unchanged on an event loop whose time jumps: its load, observation, injection, recoveries. Only
what it touches is replaced: connections to the APIs (`chat.py`, `api.py`) and SSH with the node scripts (`node.py`).
"""
