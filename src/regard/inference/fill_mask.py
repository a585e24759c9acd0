"""Masked language models: the tokens that fill the gaps of a text, all at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.data.batch import collate_sources
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.per_position import BATCH_TOKENS, self_attention_view
from regard.inference.pipeline import OnDone, ignore_progress
from regard.inference.requests import Request
from regard.inference.results import Alternative, Result
from regard.inference.text_inputs import TextInputs
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import END, MASK, MASK_SIGN
from regard.views.notebook import AttentionView

GAP = re.compile(r"\[MASK\]|<mask>|_{3,}")  # how people write a gap


@dataclass(frozen=True)
class Filler:
    """One word that a gap may be filled with."""

    word: str
    probability: float
    token: int


class FillMaskPipeline:
    """Texts with gaps in, the same texts with the most likely words out."""

    example = "___"

    def __init__(self, run: LoadedRun) -> None:
        self.run, self.inputs = run, TextInputs(run)

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for what is no text."""
        self.inputs.check(inputs)

    def fill(self, text: str, *, best: int = 5) -> list[list[Filler]]:
        """For each gap of a text ([MASK], <mask> or ___) the most likely words, each as if the other gaps stayed open.
        Raises RegardError for a text without a gap, or one that is too long."""
        if best < 1:
            raise RegardError(f"best: {best} is not possible; it must be at least 1.")
        (request,) = self._requests([text])
        if request.error:
            raise RegardError(f"{request.text[:60]!r}: {request.error}.")
        (found,) = self._fillers([request], best)
        return found

    def results(self, inputs: Sequence[str], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """Each text with its gaps filled by the most likely words; nbest: others for the first gap."""
        self.check(inputs)
        requests = self._requests(inputs)
        valid = [number for number, each in enumerate(requests) if not each.error]
        fillers = self._fillers([requests[number] for number in valid], options.nbest)
        found = {number: self._filled(requests[number], gaps) for number, gaps in zip(valid, fillers, strict=True)}
        on_done(len(inputs))
        return [
            found[number] if number in found else Result(each.text, "", 0.0, [], [], error=each.error)
            for number, each in enumerate(requests)
        ]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Self-attention over a text. Raises RegardError for what cannot be read."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that write something of what they read.")
        if isinstance(target, str):
            raise RegardError("attend: this model writes nothing; give it one text.")
        self.check([source])
        (request,) = self._requests([source], need_gap=False)
        if request.error:
            raise RegardError(f"{source[:60]!r}: {request.error}.")
        return self_attention_view(self.run, request.tokens)

    def _requests(self, texts: Sequence[str], *, need_gap: bool = True) -> list[Request]:
        """Texts as they are read, their gaps as mask tokens. need_gap: a text without one is an error."""
        longest = self.run.max_source_tokens
        checked = []
        marked = [GAP.sub(f" {MASK_SIGN} ", text) for text in texts]
        for text, request in zip(texts, self.inputs.requests(marked, Options()), strict=True):
            error = request.error
            if not error and not normalize_whitespace(text):
                error = "it is empty"
            elif not error and not LONE_SURROGATE.search(text) and not self.inputs.fits(GAP.sub(MASK_SIGN, text)):
                error = f"it is longer than the {longest:,} tokens that this model reads"
            elif not error and need_gap and MASK not in request.tokens:
                error = "it has no gap; write [MASK] or ___ where a word is to be guessed"
            checked.append(replace(request, text=text, error=error))
        return checked

    @torch.inference_mode()
    def _fillers(self, requests: Sequence[Request], best: int) -> list[list[list[Filler]]]:
        """The most likely words of each gap of each text."""
        model = self.run.bundle.model
        device = next(model.parameters()).device
        order = sorted(range(len(requests)), key=lambda number: -len(requests[number].tokens))
        found: dict[int, list[list[Filler]]] = {}
        while order:
            some = order[: max(1, BATCH_TOKENS // len(requests[order[0]].tokens))]
            order = order[len(some) :]
            batch = collate_sources(self.run.source_side, [requests[n].tokens for n in some])
            source, mask = (each.to(device) for each in batch)
            features = model.decoder(source, model.encode(source, mask)).features
            for row, number in enumerate(some):
                gaps = (source[row] == MASK).nonzero()[:, 0]
                logits = mask_reserved_tokens(model.logits(features[row, gaps]))
                logits[:, [END, MASK]] = -torch.inf  # no words
                values, tokens = logits.log_softmax(-1).topk(min(best, logits.shape[-1] - MASK - 1), -1)
                found[number] = [
                    [Filler(self._word(token), float(value.exp()), token) for value, token in zip(*gap, strict=True)]
                    for gap in zip(values, tokens.tolist(), strict=True)
                ]
        return [found[number] for number in range(len(requests))]

    def _word(self, token: int) -> str:
        """As a person reads it; the middle of a word begins with an ellipsis."""
        (text,) = self.run.target_side.decode([[token]])
        return text if text_tokenizer(self.run.source_side).word_starts[token] else f"…{text}"

    def _filled(self, request: Request, gaps: Sequence[Sequence[Filler]]) -> Result:
        tokens, score = list(request.tokens), 0.0
        target = self.run.target_side
        positions = [position for position, token in enumerate(tokens) if token == MASK]
        for position, fillers in zip(positions, gaps, strict=True):
            tokens[position] = fillers[0].token
            score += float(torch.tensor(fillers[0].probability).log())
        (text,) = target.decode([tokens])
        others = []
        for filler in gaps[0][1:]:
            (other,) = target.decode([[*tokens[: positions[0]], filler.token, *tokens[positions[0] + 1 :]]])
            others.append(Alternative(other, float(torch.tensor(filler.probability).log()), [filler.token]))
        return Result(request.text, text, score, request.tokens, tokens, others)
