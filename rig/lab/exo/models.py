"""The models an embedded cluster knows: names, layers, and sizes for placement. Cards as in exo's own answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Model:
    model_id: str
    size_bytes: int
    layers: int = 4
    hidden_size: int = 64
    kv_heads: int = 4
    family: str = "llama"
    base_model: str = "Tiny Lab"
    crashes: bool = False  # placing it does not end in a refusal but in an exception

    def card(self) -> dict[str, Any]:
        """The model card in snake_case, as events show it."""
        sampling = (
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
        )
        return {
            "model_id": self.model_id,
            "storage_size": {"in_bytes": self.size_bytes},
            "n_layers": self.layers,
            "hidden_size": self.hidden_size,
            "supports_tensor": True,
            "num_key_value_heads": self.kv_heads,
            "tasks": ["TextGeneration"],
            "components": None,
            "family": self.family,
            "quantization": "",
            "base_model": self.base_model,
            "capabilities": ["text"],
            "backends": ["MlxMetal", "MlxCuda", "MlxCpu"],
            "reasoning_dialect": "none",
            "context_length": 8192,
            "uses_cfg": False,
            "trust_remote_code": True,
            "is_custom": False,
            "vision": None,
            "sampling_defaults": dict.fromkeys((*sampling, "thinking", "non_thinking")),
        }


_GB: Final = 1024**3

STOCK_MODELS: Final[Mapping[str, Model]] = {
    m.model_id: m
    for m in (
        Model("lab/tiny-a", 821_504),
        Model("lab/tiny-b", 821_504),
        Model("lab/tiny-c", 821_504),
        Model("lab/half-node", 5 * _GB, layers=32, hidden_size=4096, kv_heads=8),  # one on a node of 8 GiB
        Model("lab/two-nodes", 12 * _GB, layers=40, hidden_size=5120, kv_heads=8),  # fits on two nodes together
        Model("lab/too-big", 100_000_000_000_000),  # never fits
        Model("lab/crashes", 821_504, crashes=True),
    )
}
