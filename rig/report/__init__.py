"""Reports of a run, from its journal alone: console, Markdown, JSON, timelines."""
