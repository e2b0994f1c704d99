"""What the target shows of itself: views, events and log lines per node, changes of them, and the rig's own health."""
