"""Token-level prediction, from the logits of every position of a text: tags of words, or start and end of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.data.batch import collate_sources
from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.attention_outputs import captured_view
from regard.inference.inputs.base import INVALID_TEXT
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, ignore_progress
from regard.inference.results import Result
from regard.interpret.forced_pass import run_forced_pass
from regard.special_tokens import EOS
from regard.views.notebook import AttentionView

BATCH_TOKENS = 4096  # padding counted


@dataclass(frozen=True)
class EncodedText:
    """An encoded text: one row of tokens, or overlapping windows of a long text; or why it cannot be encoded."""

    text: str
    rows: Sequence[list[int]] = ()
    context: Any = None  # what is needed to decode the logits
    error: str = ""

    def empty_result(self) -> Result:
        """The result for an invalid text."""
        return Result(self.text, "", 0.0, [], [], error=self.error)

    @property
    def size(self) -> int:
        """Tokens, padding counted."""
        return len(self.rows) * max(map(len, self.rows))


class TokenLevelDecoder(Protocol):
    """What differs between tagging and span extraction."""

    what: str  # what is predicted, for messages

    def encode(self, text: str) -> EncodedText:
        """The rows of tokens of a text."""
        ...

    def decode(self, encoded: EncodedText, logits: Sequence[Tensor]) -> Result:
        """The result, from the logits [T, V] of each row."""
        ...


class TokenLevelPipeline:
    """Texts in, predictions from the logits of all their positions out."""

    example = "a"

    def __init__(self, run: LoadedRun, decoder: TokenLevelDecoder, *, example: str = "a") -> None:
        self.run, self.decoder, self.example = run, decoder, example

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input that is not a text."""
        for text in inputs:
            if not isinstance(text, str):
                raise RegardError(f"{repr(text)[:60]} is not a text; give a text, or a list of texts.")

    def results(self, inputs: Sequence[str], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """A result for each text."""
        self.check(inputs)
        encoded = [self._encode(text) for text in inputs]
        found = {n: each.empty_result() for n, each in enumerate(encoded) if each.error}
        order = sorted((n for n in range(len(encoded)) if n not in found), key=lambda n: -encoded[n].size)
        on_done(len(found))
        while order:
            batch = order[: max(1, BATCH_TOKENS // encoded[order[0]].size)]
            order = order[len(batch) :]
            logits = iter(token_logits(self.run, [row for number in batch for row in encoded[number].rows]))
            for number in batch:
                found[number] = self.decoder.decode(encoded[number], [next(logits) for _ in encoded[number].rows])
            on_done(len(batch))
        return [found[number] for number in range(len(inputs))]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Self-attention over a text. Raises RegardError for an invalid text."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that predict a text or a class.")
        if isinstance(target, str):
            raise RegardError(f"attend: for {self.decoder.what}, self-attention can be shown; give one text alone.")
        self.check([source])
        encoded = self._encode(source)
        if encoded.error:
            raise RegardError(f"{source[:60]!r}: {encoded.error}.")
        return self_attention_view(self.run, encoded.rows[0])

    def _encode(self, text: str) -> EncodedText:
        return EncodedText(text, error=INVALID_TEXT) if LONE_SURROGATE.search(text) else self.decoder.encode(text)


@torch.inference_mode()
def token_logits(run: LoadedRun, rows: Sequence[list[int]]) -> list[Tensor]:
    """Logits [T, V] of each row of tokens, computed in batches."""
    model = run.bundle.model
    device = next(model.parameters()).device
    found = []
    step = max(1, BATCH_TOKENS // max(map(len, rows)))
    for start in range(0, len(rows), step):
        batch = rows[start : start + step]
        source, mask = (each.to(device) for each in collate_sources(run.source_processor, batch))
        logits = model.logits(model.decoder(source, model.encode(source, mask)).features)
        found += [each[: len(row)] for each, row in zip(logits, batch, strict=True)]
    return found


def self_attention_view(run: LoadedRun, tokens: list[int]) -> AttentionView:
    """Self-attention among the tokens of a text."""
    tokenizer = text_tokenizer(run.source_processor)
    weights = run_forced_pass(run.bundle, [tokens], [[EOS]], scores=False)[0].weights
    return captured_view((tokenizer, tokenizer), (tokens, [EOS]), weights)
