"""Whether the target says what it said before: what canaries are answered in calm weather, and what afterwards."""
