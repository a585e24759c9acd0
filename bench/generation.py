"""Text generation, compared with transformers: tokens per second, one thread, GPT-2 small's shape, random weights.

    python -m bench.generation

The same weights (those of transformers, imported), the same prompts of 32 tokens, 32 new tokens each, greedily, with a
cache on both sides; one prompt at a time and sixteen together. Nothing ends early: the end token is ruled out.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

from bench.measure import Claim, medians, report
from regard.inference.engines.torch import TorchEngine
from regard.inference.search_config import Constraints, SearchConfig
from regard.interop.family import family_of
from regard.interop.tensor_map import TokenizerPair, load_tensors
from regard.models.seq2seq import Seq2Seq
from regard.runs.bundle import Bundle
from regard.runs.folder import RunDescription
from regard.special_tokens import EOS

PROMPT_LENGTH, NEW_TOKENS = 32, 32
PROMISED = 1.5


class _NumberTokenizer:
    """A tokenizer whose tokens are numbers."""

    has_eos = True
    missing = ()

    def __init__(self, size: int) -> None:
        import numpy as np

        self.original_ids, self.description = np.arange(size), {"size": size}

    def __len__(self) -> int:
        return len(self.original_ids)

    def pieces(self, tokens):
        return [str(token) for token in tokens]


def models() -> tuple[transformers.GPT2LMHeadModel, Bundle]:
    """The same weights in both."""
    config = transformers.GPT2Config(bos_token_id=EOS, eos_token_id=EOS)
    hugging_face_model = transformers.GPT2LMHeadModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        hugging_face_model.save_pretrained(folder)
        from regard.runs.bundle import copy_tensors_into, read_tensors

        tensors = read_tensors(Path(folder) / "model.safetensors")
    tokenizer: Any = _NumberTokenizer(config.vocab_size)
    mapping = family_of(config.to_dict()).mapping(set(tensors), TokenizerPair(tokenizer, tokenizer))
    converted, _ = load_tensors(mapping, tensors, "bench")
    model = Seq2Seq(mapping.settings, source_vocabulary_size=0, target_vocabulary_size=len(tokenizer))
    copy_tensors_into(model, converted, "bench")
    from regard.data.media.none import EmptyProcessor

    description = RunDescription(max_tokens=1024, tokens_per_source_token=0.0, model=mapping.settings)
    return hugging_face_model, Bundle(description, model.eval(), EmptyProcessor(), tokenizer)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    hugging_face_model, bundle = models()
    engines = {"float32": TorchEngine(bundle), "int8": TorchEngine(bundle, int8=True)}
    claims = []
    for batch in (1, 16):
        prompt = torch.randint(10, 50_000, (batch, PROMPT_LENGTH))
        config = SearchConfig(beam=1, max_length=PROMPT_LENGTH + NEW_TOKENS + 1, tokens_per_source_token=0.0)
        constraints = [
            Constraints(prefix=tuple(row), max_length=PROMPT_LENGTH + NEW_TOKENS + 1) for row in prompt.tolist()
        ]
        empty_sources = [torch.zeros(0, dtype=torch.uint8).numpy()] * batch

        def hugging_face() -> torch.Tensor:
            with torch.inference_mode():
                return hugging_face_model.generate(
                    prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS,
                    min_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0,
                )  # fmt: skip

        candidates: dict[str, Callable[[], object]] = {"transformers": hugging_face}
        for name, engine in engines.items():
            candidates[name] = partial(engine.search, empty_sources, config, constraints)
        expected = hugging_face()[:, PROMPT_LENGTH:].tolist()
        generated = [
            hypotheses[0].tokens[PROMPT_LENGTH:-1]
            for hypotheses in engines["float32"].search(empty_sources, config, constraints)
        ]
        print(f"batch {batch}: the same tokens as transformers: {generated == expected}")
        times = medians(candidates, seconds=20, min_rounds=3)
        for name, seconds in times.items():
            print(f"  {name:14} {batch * NEW_TOKENS / seconds:8.1f} tokens/s")
        print(f"  ours in float32: {times['transformers'] / times['float32']:.2f}x")
        ratio = times["transformers"] / times["int8"]
        claims.append(Claim(f"going on, batch {batch}, int8", "transformers, float32", ratio, PROMISED))
    report(claims)


if __name__ == "__main__":
    main()
