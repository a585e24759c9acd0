"""Training language models beside Hugging Face's, of the same shape: tokens read per second on one thread.

    python -m bench.language [mask] [language]

Rows of 128 tokens, 32 of them a batch, without padding; AdamW (fused), dropout 0.1, clipping. Both sides in one process
and in turn, with the allocator set to keep its pages, which helps both.
"""

import os
import sys
from collections.abc import Callable

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from torch import Tensor

from bench.measure import Claim, medians, report
from regard.data.batch import Batch
from regard.models.seq2seq import Seq2Seq
from regard.settings import merge_settings
from regard.special_tokens import BOS, EOS, MASK, PAD
from regard.tasks.presets import preset_settings
from regard.training.malloc_tuning import raise_malloc_thresholds
from regard.training.objective import Objective, batch_loss
from regard.training.settings import RunSettings

VOCABULARY, ROWS, LENGTH, MASKED_FRACTION = 10_000, 32, 128, 0.15
WIDTH, LAYERS, HEADS, FEEDFORWARD = 128, 4, 4, 512
PROMISED = 1.5


def training_step(parameters: list[torch.nn.Parameter], loss: Callable[[], Tensor]) -> Callable[[], object]:
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


def regard_step(task: str, batch: Batch, precision: str) -> Callable[[], object]:
    """The preset of this task, whose shape the peer has, too."""
    preset = preset_settings("bert-tiny" if task == "mask" else "gpt-tiny")
    settings = RunSettings.parse(merge_settings(preset, {"training": {"precision": precision}}))
    model = Seq2Seq(
        settings.model, source_vocabulary_size=VOCABULARY * (task == "mask"), target_vocabulary_size=VOCABULARY
    ).train()
    objective = Objective(model, settings.training).train()
    return training_step(list(objective.parameters()), lambda: batch_loss(objective, batch).total / batch.tokens)


def hugging_face_step(task: str, batch: Batch) -> Callable[[], object]:
    if task == "mask":
        config = transformers.BertConfig(
            vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=FEEDFORWARD, max_position_embeddings=LENGTH,
        )  # fmt: skip
        model = transformers.BertForMaskedLM(config).train()
        labels = torch.where(batch.labels == PAD, -100, batch.labels)
        return training_step(list(model.parameters()), lambda: model(input_ids=batch.source, labels=labels).loss)
    gpt = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=FEEDFORWARD, n_positions=LENGTH,
        bos_token_id=BOS, eos_token_id=EOS,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(gpt).train()
    return training_step(
        list(model.parameters()), lambda: model(input_ids=batch.decoder_input, labels=batch.decoder_input).loss
    )


def build_batch(task: str) -> Batch:
    torch.manual_seed(1)
    text = torch.randint(MASK + 1, VOCABULARY, (ROWS, LENGTH))
    numbers = torch.arange(ROWS).numpy()
    if task == "language":
        inputs = torch.cat([torch.full((ROWS, 1), BOS), text[:, :-1]], 1)
        empty_source = torch.zeros(ROWS, 0, dtype=torch.long)
        return Batch(empty_source, empty_source.bool(), inputs, text, numbers)
    masked = torch.rand(ROWS, LENGTH) < MASKED_FRACTION
    source = torch.where(masked, MASK, text)
    return Batch(source, torch.ones_like(source, dtype=torch.bool), source, torch.where(masked, text, PAD), numbers)


def main() -> None:
    torch.set_num_threads(1)
    raise_malloc_thresholds()
    claims = []
    for task in sys.argv[1:] or ("mask", "language"):
        batch = build_batch(task)
        candidates = {
            "ours": regard_step(task, batch, "auto"),
            "ours, float32": regard_step(task, batch, "float32"),
            "hugging-face": hugging_face_step(task, batch),
        }
        times = medians(candidates, seconds=20, min_rounds=5)
        print(f"\n{task}: tokens read per second, one thread")
        for name, seconds in times.items():
            print(f"  {name:16} {ROWS * LENGTH / seconds:10,.0f}")
        exact = times["hugging-face"] / times["ours, float32"]
        print(f"  ours in float32 throughout: {exact:.2f}x")
        ratio = times["hugging-face"] / times["ours"]
        claims.append(Claim(f"training, {task}, 4 layers of width 128", "Hugging Face", ratio, PROMISED))
    report(claims)


if __name__ == "__main__":
    main()
