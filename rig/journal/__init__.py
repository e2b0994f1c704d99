"""The journal: everything that was seen during a run, append-only; the one place where the activities of a run meet."""
