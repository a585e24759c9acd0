"""Training a Transformer over patches of series beside Hugging Face's PatchTST of the same shape: windows per second.

    python -m bench.forecasting

64 windows of 512 steps and 7 columns, 96 steps ahead; patches of 16 steps every 8; 3 layers of width 128 (the default
of Hugging Face's) and of width 16 (PatchTST's for small sets). AdamW (fused), dropout, clipping. Both in one process,
in turn, one thread, with the allocator set to keep its pages, which helps both.
"""

import os
from collections.abc import Callable

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from torch import Tensor

from bench.language import training_step
from bench.measure import Claim, medians, report
from regard.data.batch import Batch
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES
from regard.settings import merge_settings
from regard.training.malloc_tuning import raise_malloc_thresholds
from regard.training.objective import Objective, batch_loss
from regard.training.settings import TrainingSettings

WINDOWS, COLUMNS, HISTORY, HORIZON = 64, 7, 512, 96
PATCH, STRIDE, LAYERS, DROPOUT = 16, 8, 3, 0.2
SIZES = {"width 128": (128, 16, 256), "width 16": (16, 4, 128)}  # width, heads, feed-forward width
PROMISED = 1.5


def build_batch() -> Batch:
    torch.manual_seed(1)
    series = torch.randn(WINDOWS, HISTORY + HORIZON, COLUMNS).cumsum(1)
    numbers = torch.arange(WINDOWS).numpy()
    labels = torch.ones(WINDOWS, 1, dtype=torch.int64)
    mask = torch.ones(WINDOWS, HISTORY, dtype=torch.bool)
    source, values = series[:, :HISTORY].contiguous(), series[:, HISTORY:].contiguous()
    return Batch(source, mask, torch.zeros_like(labels), labels, numbers, values=values)


def regard_step(size: tuple[int, int, int], batch: Batch, precision: str) -> Callable[[], object]:
    width, heads, feedforward = size
    sizes = {"width": width, "heads": heads, "feedforward": feedforward, "layers": LAYERS, "dropout": DROPOUT}
    positions = (HISTORY - PATCH) // STRIDE + 1
    shape = merge_settings(
        SHAPES["patch-transformer"].model,
        {
            "source": {"columns": COLUMNS, "history": HISTORY, "patch_length": PATCH, "patch_stride": STRIDE},
            "encoder": sizes,
            "decoder": {
                **{"width": width, "horizon": HORIZON, "columns": COLUMNS},
                **{"sequences": COLUMNS, "memory_length": positions},
            },
        },
    )
    model = Seq2Seq(ModelSettings.parse(shape), source_vocabulary_size=0, target_vocabulary_size=0).train()
    settings = TrainingSettings.parse({"precision": precision, "label_smoothing": 0.0})
    objective = Objective(model, settings, "forecast").train()
    return training_step(list(objective.parameters()), lambda: batch_loss(objective, batch).total / WINDOWS)


def hugging_face_step(size: tuple[int, int, int], batch: Batch) -> Callable[[], object]:
    width, heads, feedforward = size
    config = transformers.PatchTSTConfig(
        num_input_channels=COLUMNS, context_length=HISTORY, prediction_length=HORIZON, patch_length=PATCH,
        patch_stride=STRIDE, num_hidden_layers=LAYERS, d_model=width, num_attention_heads=heads, ffn_dim=feedforward,
        attention_dropout=DROPOUT, ff_dropout=DROPOUT, positional_dropout=DROPOUT, loss="mse", pre_norm=True,
        norm_type="layernorm", do_mask_input=False,
    )  # fmt: skip
    model = transformers.PatchTSTForPrediction(config).train()

    def loss() -> Tensor:
        found: Tensor = model(past_values=batch.source, future_values=batch.values).loss
        return found

    return training_step(list(model.parameters()), loss)


def main() -> None:
    torch.set_num_threads(1)
    raise_malloc_thresholds()
    batch, claims = build_batch(), []
    for name, size in SIZES.items():
        candidates = {
            "ours": regard_step(size, batch, "auto"),
            "ours, float32": regard_step(size, batch, "float32"),
            "hugging-face": hugging_face_step(size, batch),
        }
        times = medians(candidates, seconds=20, min_rounds=5)
        print(f"\n{name}: windows per second, one thread")
        for candidate, seconds in times.items():
            print(f"  {candidate:16} {WINDOWS / seconds:10,.1f}")
        print(f"  ours in float32 throughout: {times['hugging-face'] / times['ours, float32']:.2f}x")
        ratio = times["hugging-face"] / times["ours"]
        claims.append(Claim(f"training over patches, 3 layers of {name}", "Hugging Face PatchTST", ratio, PROMISED))
    report(claims)


if __name__ == "__main__":
    main()
