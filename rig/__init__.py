"""A chaos and soak test rig for LLM serving clusters."""

__version__ = "0.1.0"
