"""Models with a head at every position of a text: tags of its words, or where an answer begins and ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.data.batch import collate_sources
from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.attention import captured_view
from regard.inference.inputs import INVALID_TEXT
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipeline import OnDone, ignore_progress
from regard.inference.results import Result
from regard.interpret.forced_pass import run_forced_pass
from regard.special_tokens import END
from regard.views.notebook import AttentionView

BATCH_TOKENS = 4096  # padding counted


@dataclass(frozen=True)
class EncodedText:
    """A text as it is read: one row of tokens, or several overlapping ones of a long text; or why it cannot be."""

    text: str
    rows: Sequence[list[int]] = ()
    context: Any = None  # what is needed to decode the logits
    error: str = ""

    def empty_result(self) -> Result:
        """The result of a text that cannot be read."""
        return Result(self.text, "", 0.0, [], [], error=self.error)

    @property
    def size(self) -> int:
        """Tokens, padding counted."""
        return len(self.rows) * max(map(len, self.rows))


class PositionDecoder(Protocol):
    """What differs between tagging and span extraction."""

    what: str  # is predicted, in words

    def encode(self, text: str) -> EncodedText:
        """The rows that are read of a text."""
        ...

    def decode(self, encoded: EncodedText, logits: Sequence[Tensor]) -> Result:
        """The result, from the logits [T, V] of each row."""
        ...


class PerPositionPipeline:
    """Texts in, a prediction from the logits of all their positions out."""

    example = "a"

    def __init__(self, run: LoadedRun, decoder: PositionDecoder, *, example: str = "a") -> None:
        self.run, self.decoder, self.example = run, decoder, example

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for what is no text."""
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
            some = order[: max(1, BATCH_TOKENS // encoded[order[0]].size)]
            order = order[len(some) :]
            logits = iter(position_logits(self.run, [row for number in some for row in encoded[number].rows]))
            for number in some:
                found[number] = self.decoder.decode(encoded[number], [next(logits) for _ in encoded[number].rows])
            on_done(len(some))
        return [found[number] for number in range(len(inputs))]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Self-attention over a text. Raises RegardError for what cannot be read."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that write something, or predict a class.")
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
def position_logits(run: LoadedRun, rows: Sequence[list[int]]) -> list[Tensor]:
    """Logits [T, V] of each row of tokens, some rows at a time."""
    model = run.bundle.model
    device = next(model.parameters()).device
    found = []
    step = max(1, BATCH_TOKENS // max(map(len, rows)))
    for at in range(0, len(rows), step):
        some = rows[at : at + step]
        source, mask = (each.to(device) for each in collate_sources(run.source_side, some))
        logits = model.logits(model.decoder(source, model.encode(source, mask)).features)
        found += [each[: len(row)] for each, row in zip(logits, some, strict=True)]
    return found


def self_attention_view(run: LoadedRun, tokens: list[int]) -> AttentionView:
    """What the tokens of a text attend to among themselves."""
    tokenizer = text_tokenizer(run.source_side)
    weights = run_forced_pass(run.bundle, [tokens], [[END]], scores=False)[0].weights
    return captured_view((tokenizer, tokenizer), (tokens, [END]), weights)
