"""What the master's keeper did, session by session, and whether it kept its promises.

`reigns` says who was master when. `eventlog` and `viewlog` give what happened in a session, in order: exactly, from the
target's own log, or by the views of the reigning master, where no log was read. `story` makes lives of instances and
deployments out of that, `promises` judges them. All pure.
"""
