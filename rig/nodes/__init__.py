"""The machines of an inventory: reached over SSH alone, inspected, locked, checked before a run."""
