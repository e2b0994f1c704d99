"""Kinds of faults that exo alone can have."""
