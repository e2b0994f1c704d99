"""Runs beside each other: what got worse beyond noise, and how it went night after night."""
