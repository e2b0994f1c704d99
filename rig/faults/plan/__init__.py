"""What a kind of fault is, which there are, and the plan that says how often and how long each is struck."""
