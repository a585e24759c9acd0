"""A model that reads and guesses: words that are hidden in a text, told all at once."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.data.batching import given
from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.attention import captured_view
from regard.inference.options import Options
from regard.inference.requests import Asked
from regard.inference.results import Other, Result
from regard.inference.translator import Translator
from regard.interpret.forced_pass import forced
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import END, MASK, MASK_SIGN
from regard.views.notebook import CapturedView

GAP = re.compile(r"\[MASK\]|<mask>|_{3,}")  # how people write what is to be guessed
AT_ONCE = 4096  # tokens, padding counted, that are read together


@dataclass(frozen=True)
class Guess:
    """One word that a gap may be filled with."""

    word: str
    probability: float
    token: int


class Reader(Translator):
    """A model that says what was hidden at places of the text it reads, or nothing at all."""

    def fill(self, text: str, *, best: int = 5) -> list[list[Guess]]:
        """For each gap of a text ([MASK], <mask> or ___) the likeliest words, each as if the others were not known.
        Raises RegardError for a text without a gap, or one that is too long."""
        self._check_guesses()
        if best < 1:
            raise RegardError(f"best: {best} is not possible; it must be at least 1.")
        (asked,) = self._gapped([text])
        if asked.wrong:
            raise RegardError(f"{asked.text[:60]!r}: {asked.wrong}.")
        (found,) = self._guessed([asked], best)
        return found

    def results(
        self, texts: Sequence[Any], options: Options, *, done: Callable[[int], None] = lambda count: None
    ) -> list[Result]:
        """Each text with its gaps filled by the likeliest words; nbest: others for the first gap."""
        self._check_guesses()
        self.check_given(texts)
        asked = self._gapped(texts)
        right = [number for number, each in enumerate(asked) if not each.wrong]
        guessed = self._guessed([asked[number] for number in right], max(1, options.nbest))
        found = {number: self._filled(asked[number], gaps) for number, gaps in zip(right, guessed, strict=True)}
        done(len(texts))
        return [
            found[number] if number in found else Result(each.text, "", 0.0, [], [], wrong=each.wrong)
            for number, each in enumerate(asked)
        ]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> CapturedView:
        """What the words of a text attend to among themselves. Raises RegardError for what cannot be read."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that say something of what they read.")
        if target is not None:
            raise RegardError("attend: this model writes nothing; give it one text.")
        self.check_given([source])
        (asked,) = self._gapped([source], need=False)
        if asked.wrong:
            raise RegardError(f"{source[:60]!r}: {asked.wrong}.")
        told = forced(self.bundle, [asked.tokens], [[END]], scores=False)[0]
        return captured_view((self.source_side, self.target_side), (asked.tokens, [END]), told.weights)

    def _check_guesses(self) -> None:
        if not self.description.model.guesses:
            raise RegardError("this model says nothing: it reads, for regard embed and regard see.")

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        return []

    def _gapped(self, texts: Sequence[str], *, need: bool = True) -> list[Asked]:
        """Texts as they are read, their gaps marked. need: a text without one is wrong."""
        sources = self._sources([GAP.sub(f" {MASK_SIGN} ", text) for text in texts], Options())
        checked = []
        for text, source in zip(texts, sources, strict=True):
            wrong = source.wrong
            if not wrong and not normalize_whitespace(text):
                wrong = "it is empty"
            elif not wrong and not LONE_SURROGATE.search(text) and not self._fits(text):
                wrong = f"it is longer than the {self.longest:,} tokens that this model reads"
            elif not wrong and need and MASK not in source.tokens:
                wrong = "it has no gap; write [MASK] or ___ where a word is to be guessed"
            checked.append(replace(source, text=text, wrong=wrong))
        return checked

    def _fits(self, text: str) -> bool:
        return super().fits(GAP.sub(MASK_SIGN, text))

    def fits(self, text: str) -> bool:
        """What is too long is said to be."""
        return True

    @torch.inference_mode()
    def _guessed(self, asked: Sequence[Asked], best: int) -> list[list[list[Guess]]]:
        """The likeliest words of each gap of each text."""
        model = self.bundle.model
        device = next(model.parameters()).device
        order = sorted(range(len(asked)), key=lambda number: -len(asked[number].tokens))
        found: dict[int, list[list[Guess]]] = {}
        while order:
            some = order[: max(1, AT_ONCE // len(asked[order[0]].tokens))]
            order = order[len(some) :]
            source, mask = (each.to(device) for each in given(self.source_side, [asked[n].tokens for n in some]))
            features = model.decoder(source, model.encode(source, mask)).features
            for row, number in enumerate(some):
                gaps = (source[row] == MASK).nonzero()[:, 0]
                logits = mask_reserved_tokens(model.logits(features[row, gaps]))
                logits[:, [END, MASK]] = -torch.inf  # no words
                values, tokens = logits.log_softmax(-1).topk(min(best, logits.shape[-1] - MASK - 1), -1)
                found[number] = [
                    [Guess(self._word(token), float(value.exp()), token) for value, token in zip(*gap, strict=True)]
                    for gap in zip(values, tokens.tolist(), strict=True)
                ]
        return [found[number] for number in range(len(asked))]

    def _word(self, token: int) -> str:
        """As a person reads it; the middle of a word is told as such."""
        (text,) = self.target_side.decode([[token]])
        return text if in_text(self.source_side).word_starts[token] else f"…{text}"

    def _filled(self, asked: Asked, gaps: Sequence[Sequence[Guess]]) -> Result:
        tokens, score = list(asked.tokens), 0.0
        at = [place for place, token in enumerate(tokens) if token == MASK]
        for place, guesses in zip(at, gaps, strict=True):
            tokens[place] = guesses[0].token
            score += float(torch.tensor(guesses[0].probability).log())
        (text,) = self.target_side.decode([tokens])
        others = []
        for guess in gaps[0][1:]:
            (said,) = self.target_side.decode([[*tokens[: at[0]], guess.token, *tokens[at[0] + 1 :]]])
            others.append(Other(said, float(torch.tensor(guess.probability).log()), [guess.token]))
        return Result(asked.text, text, score, asked.tokens, tokens, others)
