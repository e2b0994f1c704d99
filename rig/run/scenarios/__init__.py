"""Scripted scenarios for what a random soak may not reach: each causes something, and says what must follow.

A scenario is a YAML file like a fault plan. It is played against any target; what it expects is judged from the
journal, by the same checks as a soak and by the expectations written in it.
"""
