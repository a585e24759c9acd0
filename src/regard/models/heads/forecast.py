"""The forecast of a series, from the encoder's output: one linear layer over all positions (Nie et al. 2022,
arXiv:2211.14730), over each column's own position (Liu et al. 2023, arXiv:2310.06625), or over what a learned query
for each step ahead attends to."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from regard.attention import Attention, Hard
from regard.attention.normalizers import Normalizer
from regard.attention.scores import SCORES
from regard.models.dropout import Dropout
from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.stems.series import align_right, instance_statistics

if TYPE_CHECKING:
    from regard.models.seq2seq import Seq2Seq
    from regard.models.settings.decoders.forecast import ForecastHeadSettings


class ForecastHead(nn.Module):
    """Memory [B S, P, M], of S sequences for each window -> features [B, H, C, Q]: the forecast, normalized."""

    def __init__(self, settings: "ForecastHeadSettings", memory_width: int) -> None:
        super().__init__()
        self.settings = settings
        M, H, Q = memory_width, settings.horizon, settings.outputs
        # Columns that one sequence, or one position, forecasts.
        self.columns = 1 if settings.pool == "position" or settings.sequences > 1 else settings.columns
        self.attention: Attention | None = None
        if settings.pool == "attention":
            normalize: str | Normalizer = Hard("gumbel") if settings.normalize == "hard" else settings.normalize
            self.query = nn.Parameter(torch.empty(H, settings.width))
            self.attention = Attention(
                settings.width,
                heads=settings.heads,
                key_width=M,
                score=settings.score,
                normalize=normalize,
                project="vo" if SCORES.get(settings.score).projects else "kvo",
                output_width=M,
            )
            nn.init.normal_(self.query)
        inputs = M * settings.memory_length if settings.pool == "flatten" else M
        outputs = self.columns * Q if settings.pool == "attention" else self.columns * H * Q
        self.dropout = Dropout(settings.head_dropout)
        self.project = nn.Linear(inputs, outputs)
        self.skip: nn.Linear | None = None
        if settings.linear_skip:
            self.skip = nn.Linear(settings.history, H * Q)
            nn.init.zeros_(self.skip.weight)
            nn.init.zeros_(self.skip.bias)

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets, which are ignored -> features [B, H, C, Q]."""
        settings, states = self.settings, memory.states * memory.mask[..., None]
        H, Q, S, C = settings.horizon, settings.outputs, settings.sequences, self.columns
        weights: list[Tensor] = []
        if self.attention is not None:
            query = self.query.expand(len(states), -1, -1)
            attended = self.attention(
                query, memory.states, memory.values, mask=memory.attention_mask, need_weights=need_weights
            )
            values = self.project(self.dropout(attended.output)).view(-1, S, H, C, Q)
            weights = [attended.weights] if attended.weights is not None else []
        elif settings.pool == "flatten":
            states = align_right(states, memory.mask)
            states = pad(states, (0, 0, settings.memory_length - states.shape[1], 0))  # missing ones at the beginning
            values = self.project(self.dropout(states.flatten(1))).view(-1, S, C, H, Q).transpose(2, 3)
        else:
            values = self.project(self.dropout(states)).unflatten(-1, (1, H, Q)).transpose(2, 3)  # [B, P, H, 1, Q]
        values = values.transpose(1, 2).flatten(2, 3)[:, :, : settings.columns]  # [B, H, S C, Q]
        return DecoderOutput(values, weights)


def forecast_values(model: "Seq2Seq", source: Tensor, mask: Tensor, features: Tensor) -> Tensor:
    """The head's features [B, H, C, Q] in the units of the source: instance normalization is reversed.

    A linear map of the normalized window is added, if the head has one.
    """
    mean, scale = instance_statistics(source, mask, getattr(model.settings.source, "instance_norm", "none"))
    C = features.shape[2]
    skip = getattr(model.decoder, "skip", None)
    if skip is not None:
        window = ((source - mean) / scale * mask[..., None])[..., :C].transpose(1, 2)  # [B, C, T]
        window = pad(window, (skip.in_features - window.shape[-1], 0))
        features = features + skip(window).unflatten(-1, (features.shape[1], -1)).transpose(1, 2)
    return features * scale[:, :, :C, None] + mean[:, :, :C, None]
