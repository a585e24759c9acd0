"""Masked language models: the most likely tokens for each mask of a text, predicted independently."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.data.batch import collate_sources
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.inputs.request import Request
from regard.inference.inputs.text import TextInputs
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, ignore_progress
from regard.inference.pipelines.token_level import BATCH_TOKENS, self_attention_view
from regard.inference.results import Alternative, Result
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import EOS, MASK, MASK_CHARACTER
from regard.views.notebook import AttentionView

MASK_PATTERN = re.compile(r"\[MASK\]|<mask>|_{3,}")  # the ways to write a mask


@dataclass(frozen=True)
class MaskPrediction:
    """A word predicted for a mask."""

    word: str
    probability: float
    token: int


class FillMaskPipeline:
    """Texts with masks in, the same texts with the most likely words out."""

    example = "___"

    def __init__(self, run: LoadedRun) -> None:
        self.run, self.inputs = run, TextInputs(run)

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input that is not a text."""
        self.inputs.check(inputs)

    def fill(self, text: str, *, nbest: int = 5) -> list[list[MaskPrediction]]:
        """For each mask of a text ([MASK], <mask> or ___) the most likely words, with the other masks unfilled. Raises
        RegardError for a text without a mask, or one that is too long."""
        if nbest < 1:
            raise RegardError(f"nbest: {nbest} is not possible; it must be at least 1.")
        (request,) = self._requests([text])
        if request.error:
            raise RegardError(f"{request.text[:60]!r}: {request.error}.")
        (found,) = self._predict_masks([request], nbest)
        return found

    def results(self, inputs: Sequence[str], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """Each text with its masks filled by the most likely words; nbest: with alternatives for the first mask."""
        self.check(inputs)
        requests = self._requests(inputs)
        valid = [number for number, each in enumerate(requests) if not each.error]
        predictions = self._predict_masks([requests[number] for number in valid], options.nbest)
        found = {
            number: self._filled_result(requests[number], own) for number, own in zip(valid, predictions, strict=True)
        }
        on_done(len(inputs))
        return [
            found[number] if number in found else Result(each.text, "", 0.0, [], [], error=each.error)
            for number, each in enumerate(requests)
        ]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Self-attention over a text. Raises RegardError for an invalid text."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that predict a target from a source.")
        if isinstance(target, str):
            raise RegardError("attend: this model has no target; give it one text.")
        self.check([source])
        (request,) = self._requests([source], need_mask=False)
        if request.error:
            raise RegardError(f"{source[:60]!r}: {request.error}.")
        return self_attention_view(self.run, request.tokens)

    def _requests(self, texts: Sequence[str], *, need_mask: bool = True) -> list[Request]:
        """Encoded texts with mask tokens. need_mask: a text without a mask is an error."""
        max_tokens = self.run.max_source_tokens
        checked = []
        masked = [MASK_PATTERN.sub(f" {MASK_CHARACTER} ", text) for text in texts]
        for text, request in zip(texts, self.inputs.requests(masked, Options()), strict=True):
            error = request.error
            if not error and not normalize_whitespace(text):
                error = "it is empty"
            elif not error and not LONE_SURROGATE.search(text) and self._is_too_long(text):
                error = f"it is longer than the {max_tokens:,} tokens that this model reads"
            elif not error and need_mask and MASK not in request.tokens:
                error = "it has no mask; write [MASK] or ___ for the word to predict"
            checked.append(replace(request, text=text, error=error))
        return checked

    def _is_too_long(self, text: str) -> bool:
        return not self.inputs.within_max_length(MASK_PATTERN.sub(MASK_CHARACTER, text))

    @torch.inference_mode()
    def _predict_masks(self, requests: Sequence[Request], nbest: int) -> list[list[list[MaskPrediction]]]:
        """The most likely words for each mask of each text."""
        model = self.run.bundle.model
        device = next(model.parameters()).device
        order = sorted(range(len(requests)), key=lambda number: -len(requests[number].tokens))
        found: dict[int, list[list[MaskPrediction]]] = {}
        while order:
            numbers = order[: max(1, BATCH_TOKENS // len(requests[order[0]].tokens))]
            order = order[len(numbers) :]
            batch = collate_sources(self.run.source_processor, [requests[n].tokens for n in numbers])
            source, mask = (each.to(device) for each in batch)
            features = model.decoder(source, model.encode(source, mask)).features
            for row, number in enumerate(numbers):
                positions = (source[row] == MASK).nonzero()[:, 0]
                logits = mask_reserved_tokens(model.logits(features[row, positions]))
                logits[:, [EOS, MASK]] = -torch.inf  # no words
                values, tokens = logits.log_softmax(-1).topk(min(nbest, logits.shape[-1] - MASK - 1), -1)
                found[number] = [
                    [
                        MaskPrediction(self._display_text(token), float(value.exp()), token)
                        for value, token in zip(*ranked, strict=True)
                    ]
                    for ranked in zip(values, tokens.tolist(), strict=True)
                ]
        return [found[number] for number in range(len(requests))]

    def _display_text(self, token: int) -> str:
        """The text of a token; one that continues a word begins with an ellipsis."""
        (text,) = self.run.target_vocabulary.decode([[token]])
        return text if text_tokenizer(self.run.source_processor).word_starts[token] else f"…{text}"

    def _filled_result(self, request: Request, predictions: Sequence[Sequence[MaskPrediction]]) -> Result:
        tokens, score = list(request.tokens), 0.0
        target = self.run.target_vocabulary
        positions = [position for position, token in enumerate(tokens) if token == MASK]
        for position, ranked in zip(positions, predictions, strict=True):
            tokens[position] = ranked[0].token
            score += float(torch.tensor(ranked[0].probability).log())
        (text,) = target.decode([tokens])
        alternatives = []
        first = positions[0]
        for prediction in predictions[0][1:]:
            (other,) = target.decode([[*tokens[:first], prediction.token, *tokens[first + 1 :]]])
            log_probability = float(torch.tensor(prediction.probability).log())
            alternatives.append(Alternative(other, log_probability, [prediction.token]))
        return Result(request.text, text, score, request.tokens, tokens, alternatives)
