"""Checks of what exo promises."""
