"""The machines of an inventory: reached over SSH or being this one, inspected, locked, checked before a run."""
