# pyright: basic, reportMissingImports=false
"""Writes a tiny Llama with random weights, for a real server: `.venv-mlx/bin/python tiny_model.py FOLDER`.

A token a byte, so that answers hold what is no UTF-8; the end token is never likely, so that answers have their length.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mlx.core as mx
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WIDTH, INNER, HEADS, LAYERS = 64, 128, 4, 2
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "


def write(folder: Path) -> None:
    tokens = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "vocab_size": len(tokens),
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), _weights(len(tokens)), metadata={"format": "pt"})


def _weights(tokens: int) -> dict[str, mx.array]:
    mx.random.seed(1)

    def some(*shape: int) -> mx.array:
        return mx.random.normal(shape) * 0.1

    weights = {
        "model.embed_tokens.weight": some(tokens, WIDTH) * 10,
        "model.norm.weight": mx.ones((WIDTH,)),
        "lm_head.weight": some(tokens, WIDTH) * 3,
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        weights |= {f"{at}.self_attn.{name}_proj.weight": some(WIDTH, WIDTH) for name in "qkvo"}
        weights |= {f"{at}.mlp.{name}_proj.weight": some(INNER, WIDTH) for name in ("gate", "up")}
        weights[f"{at}.mlp.down_proj.weight"] = some(WIDTH, INNER)
        weights |= {f"{at}.{name}_layernorm.weight": mx.ones((WIDTH,)) for name in ("input", "post_attention")}
    return weights


if __name__ == "__main__":
    write(Path(sys.argv[1]))
