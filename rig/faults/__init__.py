"""Faults: a file for each kind, which is one value named `KIND`. `rig.faults.plan` is what they have in common."""
