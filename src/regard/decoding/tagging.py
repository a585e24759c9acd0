"""A class of every word: names, parts of speech."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.data.batches import given
from regard.data.door import HALF, tidy
from regard.data.parts import by_words, framed
from regard.data.sides import in_text
from regard.decoding.capturing import captured
from regard.decoding.forced import forced
from regard.decoding.options import Options
from regard.decoding.results import Result
from regard.decoding.translator import Translator
from regard.seeing.captured import Captured
from regard.tokens import BEGIN, END

AT_ONCE = 4096  # tokens, padding counted, that are read together


@dataclass(frozen=True)
class _Read:
    """A text as it is read, and where its words begin."""

    text: str
    tokens: list[int]
    firsts: list[int]
    wrong: str = ""


class Tagger(Translator):
    """A model that says a tag of every word of a text; words are what blanks divide."""

    def tags(self, text: str) -> list[tuple[str, str]]:
        """Each word and its tag. Raises ValueError for a text that cannot be read."""
        result = self.translate(text)
        if result.wrong:
            raise ValueError(f"{text[:60]!r}: {result.wrong}.")
        return list(zip(tidy(text).split(), result.text.split(), strict=True))

    def results(
        self, texts: Sequence[Any], options: Options, *, done: Callable[[int], None] = lambda count: None
    ) -> list[Result]:
        """The tags of each text, with blanks between."""
        self.check_given(texts)
        read = [self._read(text) for text in texts]
        found = {n: Result(each.text, "", 0.0, [], [], wrong=each.wrong) for n, each in enumerate(read) if each.wrong}
        order = sorted((n for n in range(len(read)) if n not in found), key=lambda n: -len(read[n].tokens))
        done(len(found))
        while order:
            some = order[: max(1, AT_ONCE // len(read[order[0]].tokens))]
            order = order[len(some) :]
            found |= zip(some, self._tagged([read[number] for number in some]), strict=True)
            done(len(some))
        return [found[number] for number in range(len(texts))]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> Captured:
        """What the words of a text attend to among themselves. Raises ValueError for what cannot be read."""
        if attribution or target is not None:
            raise ValueError("attend: of tags, what words attend to among themselves can be seen; give one text alone.")
        self.check_given([source])
        read = self._read(source)
        if read.wrong:
            raise ValueError(f"{source[:60]!r}: {read.wrong}.")
        told = forced(self.bundle, [read.tokens], [[END]], scores=False)[0]
        return captured((self.source_side, in_text(self.source_side)), (read.tokens, [END]), told.weights)

    def fits(self, text: str) -> bool:
        """What is too long is said to be."""
        return True

    def _read(self, text: str) -> _Read:
        if HALF.search(text):
            return _Read(text, [], [], "it is not UTF-8, or has half a character (a lone surrogate)")
        (tokens,), (firsts,) = by_words([self.cased(tidy(text))], in_text(self.source_side).encode)
        whole = framed(tokens, self.description.model.source)
        if not tokens:
            return _Read(text, [], [], "it is empty")
        if len(whole) > self.longest:
            return _Read(text, [], [], f"it is longer than the {self.longest:,} tokens that this model reads")
        return _Read(text, whole, [place + int(whole[0] == BEGIN) for place in firsts])

    @torch.inference_mode()
    def _tagged(self, read: Sequence[_Read]) -> list[Result]:
        model = self.bundle.model
        device = next(model.parameters()).device
        source, mask = (each.to(device) for each in given(self.source_side, [each.tokens for each in read]))
        logs = model.logits(model.decoder(source, model.encode(source, mask)).features).log_softmax(-1)
        found = []
        for row, each in enumerate(read):
            best = logs[row, each.firsts].max(-1)
            tokens, score = best.indices.tolist(), float(best.values.mean())
            (text,) = self.target_side.decode([tokens])
            found.append(Result(each.text, text, score, each.tokens, tokens))
        return found
