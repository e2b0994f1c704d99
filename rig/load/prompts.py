"""Prompts: text of about so many tokens, the same for the same random numbers. Pure."""

from __future__ import annotations

from random import Random
from typing import Final

_TEXT: Final = """
the a of and in to is that for it with as on be at by this have from or one had not but what all were when we there can
an your which their if do will each about how up out them then she many some so these would other into has more her two
like him see time could no make than first been its who now people my made over did down only way find use may water
long little very after words called just where most know
"""
_WORDS: Final = tuple(_TEXT.split())  # each one token for the usual tokenizers


def prompt(rng: Random, tokens: int) -> str:
    """`tokens` common words. A new start for each request, so that no prefix cache answers for the model."""
    return " ".join(rng.choices(_WORDS, k=tokens))
