"""One training step over the same batches: ours, Hugging Face's Marian, torch.nn.Transformer, JoeyNMT's GRU.

    python -m bench.training_peers NAME SHAPE MALLOC      as a worker of bench.training

Every candidate (but one, which shows what that brings) gets the same padded batches of random sentences whose lengths
are those of captions (9 to 30 words), AdamW (fused), label smoothing 0.1, dropout, and clipping. MALLOC is "default" or
"tuned".
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bench.workers import serve
from regard.data.batch import Batch, collate_tokens
from regard.data.batch_plan import plan_epoch
from regard.training.malloc_tuning import raise_malloc_thresholds

VOCABULARY, TOKENS, BATCHES = 10_000, 4096, 3
JOEYNMT_BATCHES = "joeynmt's own batches"  # the same model, fed as its own loop feeds it


@dataclass(frozen=True)
class Shape:
    """Sizes of a Transformer (or of a recurrent model, where heads and feedforward mean nothing)."""

    layers: int
    width: int
    heads: int
    feedforward: int
    dropout: float


SHAPES = {
    "tiny": Shape(4, 128, 4, 256, 0.3),
    "base": Shape(6, 512, 8, 2048, 0.1),
    "recurrent": Shape(1, 256, 1, 0, 0.2),
}


def batches(*, by_length: bool = True) -> list[Batch]:
    """About 4,096 target tokens each, of like length: the same for everyone.

    Not `by_length`: sentences as they come until their longest side, padded, has as many tokens, which is how JoeyNMT
    makes its own batches.
    """
    generator = np.random.default_rng(1)
    lengths = np.clip(generator.gamma(9.0, 1.7, (8000, 2)).round(), 5, 40).astype(np.int32)
    lengths[:, 0] = np.clip(lengths[:, 1] + generator.integers(-2, 3, 8000), 4, 40)
    if by_length:
        plan = plan_epoch(lengths[:, 0], lengths[:, 1], tokens=TOKENS, seed=1, epoch=0)
    else:
        plan = _batches_in_order(lengths.max(1))
    candidates = []
    for numbers in plan[:BATCHES]:
        source, target = [
            [[*map(int, generator.integers(4, VOCABULARY, lengths[number, side] - 1)), 3] for number in numbers]
            for side in (0, 1)
        ]
        candidates.append(collate_tokens(source, target, numbers))
    return candidates


def _batches_in_order(max_lengths: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    plan, batch_numbers, max_length = [], [], 0
    for number, length in enumerate(max_lengths):
        batch_numbers.append(number)
        max_length = max(max_length, int(length))
        if max_length * len(batch_numbers) >= TOKENS:
            plan.append(np.array(batch_numbers))
            batch_numbers, max_length = [], 0
    return plan


Loss = Callable[[Batch], Tensor]  # the mean loss of a batch


def regard_model(shape: Shape, preset: str, precision: str) -> tuple[nn.Module, Loss]:
    from regard.models.seq2seq import Seq2Seq
    from regard.models.settings import ModelSettings
    from regard.settings import merge_settings
    from regard.tasks.presets import preset_settings as preset_settings_of
    from regard.training.objective import Objective, batch_loss
    from regard.training.settings import TrainingSettings

    sizes = {"layers": shape.layers, "width": shape.width, "dropout": shape.dropout}
    if shape.feedforward:
        sizes |= {"heads": shape.heads, "feedforward": shape.feedforward}
    model = merge_settings(preset_settings_of(preset)["model"], {"encoder": sizes, "decoder": sizes})
    settings = TrainingSettings.parse({"label_smoothing": 0.1, "precision": precision})
    network = Seq2Seq(ModelSettings.parse(model), source_vocabulary_size=VOCABULARY, target_vocabulary_size=VOCABULARY)
    objective = Objective(network, settings).train()
    return objective, lambda batch: batch_loss(objective, batch).total / batch.tokens


def hugging_face(shape: Shape) -> tuple[nn.Module, Loss]:
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            d_model=shape.width,
            encoder_layers=shape.layers,
            decoder_layers=shape.layers,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            encoder_ffn_dim=shape.feedforward,
            decoder_ffn_dim=shape.feedforward,
            dropout=shape.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            max_position_embeddings=256,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            decoder_start_token_id=2,
        )
    ).train()

    def loss(batch: Batch) -> Tensor:
        output = model(
            input_ids=batch.source,
            attention_mask=batch.mask.long(),
            decoder_input_ids=batch.decoder_input,
            use_cache=False,
        )
        return smoothed_cross_entropy(output.logits, batch)

    return model, loss


def smoothed_cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0, label_smoothing=0.1
    )


class PlainTransformer(nn.Module):
    """torch.nn.Transformer as its tutorial uses it, with tied embeddings."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, shape.width)
        self.positions = nn.Embedding(256, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.transformer = nn.Transformer(
            shape.width,
            shape.heads,
            shape.layers,
            shape.layers,
            shape.feedforward,
            shape.dropout,
            batch_first=True,
            norm_first=True,
        )

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens) * self.table.embedding_dim**0.5 + self.positions(torch.arange(tokens.shape[1]))
        return self.dropout(x)

    def forward(self, batch: Batch) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(batch.decoder_input.shape[1])
        hidden = self.transformer(
            self.embed(batch.source),
            self.embed(batch.decoder_input),
            tgt_mask=causal,
            src_key_padding_mask=torch.zeros(batch.mask.shape).masked_fill(~batch.mask, -torch.inf),
            memory_key_padding_mask=torch.zeros(batch.mask.shape).masked_fill(~batch.mask, -torch.inf),
            tgt_is_causal=True,
        )
        return nn.functional.linear(hidden, self.table.weight)


def plain_torch(shape: Shape) -> tuple[nn.Module, Loss]:
    model = PlainTransformer(shape).train()
    return model, lambda batch: smoothed_cross_entropy(model(batch), batch)


def joeynmt(shape: Shape) -> tuple[nn.Module, Loss]:
    """JoeyNMT's bidirectional GRU encoder and its decoder with Bahdanau attention, at our widths."""
    from joeynmt.decoders import RecurrentDecoder
    from joeynmt.encoders import RecurrentEncoder

    source, target = nn.Embedding(VOCABULARY, shape.width), nn.Embedding(VOCABULARY, shape.width)
    encoder = RecurrentEncoder(
        rnn_type="gru",
        hidden_size=shape.width,
        emb_size=shape.width,
        num_layers=1,
        dropout=shape.dropout,
        emb_dropout=shape.dropout,
        bidirectional=True,
    )
    decoder = RecurrentDecoder(
        rnn_type="gru",
        emb_size=shape.width,
        hidden_size=shape.width,
        encoder=encoder,
        attention="bahdanau",
        num_layers=1,
        vocab_size=VOCABULARY,
        dropout=shape.dropout,
        emb_dropout=shape.dropout,
        hidden_dropout=shape.dropout,
        init_hidden="bridge",
        input_feeding=True,
    )
    model = nn.ModuleList([source, target, encoder, decoder]).train()

    def loss(batch: Batch) -> Tensor:
        mask = batch.mask[:, None]
        # Packing wants the longest first.
        order = batch.mask.sum(1).argsort(descending=True)
        output, hidden = encoder(source(batch.source[order]), batch.mask.sum(1)[order], mask[order])
        outputs, *_ = decoder(
            trg_embed=target(batch.decoder_input[order]),
            encoder_output=output,
            encoder_hidden=hidden,
            src_mask=mask[order],
            unroll_steps=batch.decoder_input.shape[1],
        )
        logits = outputs
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.labels[order].flatten(), ignore_index=0, label_smoothing=0.1
        )

    return model, loss


def candidate_batches(name: str, size: str) -> list[Batch]:
    """The batches that a candidate is timed on."""
    return batches(by_length=name != JOEYNMT_BATCHES)[: 1 if size == "base" else BATCHES]


def main() -> None:
    name, size, malloc = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if malloc == "tuned":
        assert raise_malloc_thresholds()
    shape = SHAPES[size]
    preset = {"tiny": "transformer-tiny", "base": "transformer-base", "recurrent": "bahdanau"}[size]
    if name.startswith("ours"):
        model, loss = regard_model(shape, preset, "float32" if name == "ours-float32" else "auto")
    else:
        candidates = {
            "hugging-face": hugging_face,
            "nn.Transformer": plain_torch,
            "joeynmt": joeynmt,
            JOEYNMT_BATCHES: joeynmt,
        }
        model, loss = candidates[name](shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    batches_to_time = candidate_batches(name, size)

    def step() -> None:
        for batch in batches_to_time:
            optimizer.zero_grad()
            loss(batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    serve(step)


if __name__ == "__main__":
    main()
