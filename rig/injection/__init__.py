"""Faults: which (`schedule`), on whom (`aim`), one from strike to heal (`fault`), all of a run in turn (`injector`).

`lease` reads what nodes say is in force on them, and undoes it. What runs on a node is `faults/*.sh`; nothing here
signals a process or sets a packet filter itself.
"""
