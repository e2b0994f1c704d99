"""Prompts: text of about so many tokens, the same for the same random numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from rig.config.traces import BLOCK_TOKENS

_TEXT: Final = """
the a of and in to is that for it with as on be at by this have from or one had not but what all were when we there can
an your which their if do will each about how up out them then she many some so these would other into has more her two
like him see time could no make than first been its who now people my made over did down only way find use may water
long little very after words called just where most know
"""
_WORDS: Final = tuple(_TEXT.split())  # each one token for the usual tokenizers
_START: Final = 8  # words drawn for each prompt: some 10^16 starts
_BODY: Final = tuple(Random(0).choices(_WORDS, k=8192))


def prompt(rng: Random, tokens: int, blocks: Sequence[str] = ()) -> str:
    """`tokens` common words. A new start for each request, so that no prefix cache answers for the model; what follows
    is taken from one long text, since drawing word by word would cost more than all the rest of a request.

    With `blocks` it begins with the words that belong to each name, `BLOCK_TOKENS` for each: what a prefix cache had of
    the recorded prompts it has of these.
    """
    words: list[str] = []
    for block in blocks:
        words += _words(Random(block), BLOCK_TOKENS)
    if len(words) < tokens:
        words += _words(rng, tokens - len(words))
    return " ".join(words[:tokens])


def _words(rng: Random, tokens: int) -> list[str]:
    words: list[str] = rng.choices(_WORDS, k=min(tokens, _START))
    while (left := tokens - len(words)) > 0:
        first = int(rng.random() * len(_BODY))
        words += _BODY[first : first + left]
    return words
