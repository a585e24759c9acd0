"""What a person may ask of a translation: one set of options for Python, the command line and the service."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.inference.results import SMALL, Sampling, Search

if TYPE_CHECKING:
    from regard.models.settings import ModelSettings

WORDS = ("temperature", "top_k", "top_p", "prefix", "forbidden", "required", "glossary")  # wishes about words
BETWEEN = (
    ("beam", 1, 1000),
    ("nbest", 1, 1000),
    ("length_penalty", 0, 10),
    ("coverage_penalty", 0, 100),
    ("diversity", 0, 1000),
)


@dataclass(frozen=True)
class Options:
    """How to translate.

    beam, nbest, length_penalty, coverage_penalty, no_repeat, groups, diversity: as in `Search`. temperature, top_k,
    top_p, seed: as in `Sampling`; naming one of the first three draws instead of searching. most: tokens of an output
    for each token of its source, at most. prefix: how every output begins. forbidden: words and phrases never said.
    to: the language, of a model of several.
    required: words and phrases that must be said. glossary: what must be said where the source says so.
    scores, attention, alignment: what to tell beside the text.
    """

    beam: int = 5
    nbest: int = 1
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    no_repeat: int = 0
    groups: int = 1
    diversity: float = 0.5
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1
    most: float | None = None
    prefix: str = ""
    to: str = ""
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    glossary: dict[str, str] = field(default_factory=dict)
    scores: bool = False
    attention: bool = False
    alignment: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            kind = each.type.__name__ if isinstance(each.type, type) else str(each.type)
            _check(each.name, kind, getattr(self, each.name))
        for name in ("forbidden", "required"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, least, most in BETWEEN:
            if not least <= getattr(self, name) <= most:
                value = getattr(self, name)
                raise RegardError(f"{name}: {value} is not possible; it must be between {least:,} and {most:,}.")
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"top_k: {self.top_k} is not possible; it must be at least 1.")
        if self.draws and self.groups > 1:
            raise RegardError("groups are for a search; leave out temperature, top_k and top_p.")
        if self.draws and (self.required or self.glossary):
            raise RegardError("required words and a glossary need a search; leave out temperature, top_k and top_p.")
        for phrase in (*self.required, *self.glossary.values()):
            if phrase in self.forbidden:
                raise RegardError(f"{phrase!r} is both required and forbidden; leave one out.")

    @staticmethod
    def of(given: dict[str, Any]) -> "Options":
        """From names and values. Raises RegardError for a name that is none."""
        known = [each.name for each in fields(Options)]
        for name in given:
            if name not in known:
                raise RegardError(f"{name}: there is no such option; there are {', '.join(known)}.")
        return Options(**given)

    @property
    def draws(self) -> bool:
        """Whether words are drawn."""
        return any(value is not None for value in (self.temperature, self.top_k, self.top_p))

    def check_for(self, model: "ModelSettings") -> None:
        """Raises RegardError for wishes that such a model cannot have, since it does not search for words."""
        wordless = () if model.step_by_step else WORDS
        single = ("nbest", "alignment") if model.says in ("tags", "span") else ()
        for name in (*wordless, *single):
            value = getattr(self, name)
            if value not in (None, False, "", (), {}) and (name, value) != ("nbest", 1):
                raise RegardError(f"{name}: this model does not search for words, and says one thing; leave it out.")

    def search(self, *, per_token: float, longest: int, vocabulary: int, single: bool = False) -> Search:
        """For a model whose outputs have at most so many tokens, drawn from such a vocabulary."""
        sampling = None
        if self.draws:
            sampling = Sampling(
                1.0 if self.temperature is None else self.temperature,
                self.top_k or 0,
                1.0 if self.top_p is None else self.top_p,
                self.seed,
            )
        if self.most is not None and self.most <= 0:
            raise RegardError(f"most: {self.most} is not possible; it must be above 0.")
        return Search(
            beam=self.beam,
            length_penalty=self.length_penalty,
            coverage_penalty=self.coverage_penalty,
            nbest=self.nbest,
            per_token=per_token,
            longest=longest,
            patient=vocabulary < SMALL,
            no_repeat=self.no_repeat,
            groups=self.groups,
            diversity=self.diversity,
            forbidden=self.forbidden,
            sampling=sampling,
            relative=self.most,
            single=single,
        )


def _check(name: str, kind: str, value: Any) -> None:
    """Raises RegardError, in words, for a value that is not of the kind that an option is annotated with."""
    if value is None and kind.endswith("None"):
        return
    if kind.startswith("tuple"):
        if (
            isinstance(value, str)
            or not isinstance(value, Sequence)
            or not all(isinstance(each, str) for each in value)
        ):
            raise RegardError(f"{name}: give a list of words or phrases, such as ['dog', 'in the park'].")
    elif kind.startswith("dict"):
        pairs = value.items() if isinstance(value, Mapping) else [(None, None)]
        if not all(isinstance(each, str) for pair in pairs for each in pair):
            raise RegardError(f"{name}: give terms and what they become, such as {{'dog': 'Hund'}}.")
    elif kind.startswith("float"):
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise RegardError(f"{name}: {value!r} is not possible; it must be a number.")
    elif kind.startswith("int"):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise RegardError(f"{name}: {value!r} is not possible; it must be a whole number.")
    elif kind == "str" and not isinstance(value, str):
        raise RegardError(f"{name}: {value!r} is not possible; it must be a text.")
