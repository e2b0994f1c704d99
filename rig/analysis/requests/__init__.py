"""Requests counted and timed, each with the faults that it met."""
