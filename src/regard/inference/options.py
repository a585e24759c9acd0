"""Decoding options: one schema for Python keywords, the command line, the HTTP body and the page's form.

Names, types, bounds and help texts are the fields below. Options belong to groups; a task accepts some of them. Setting
an option that does not apply to the task or to the search is an error. Imports no PyTorch.
"""

from collections.abc import Collection, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from regard.errors import RegardError
from regard.inference.search.base import ignored_options, selectable_searches
from regard.inference.search_config import SMALL_VOCABULARY, Sampling, SearchConfig
from regard.renames import OPTIONS

GROUPS = (  # of options; a task accepts some of them
    *("search", "nbest", "sampling", "prefix", "forbidden", "glossary"),
    *("language", "length", "scores", "alignment", "attention", "forecast"),
)
SAMPLING = ("temperature", "top_k", "top_p")  # setting one of these samples, if no search is named


def _option(default: Any, group: str, help_text: str, **bounds: Any) -> Any:
    return Field(default, description=help_text, json_schema_extra={"group": group}, **bounds)


class Options(BaseModel):
    """How outputs are decoded, and what is returned with them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=False)

    search: str | None = _option(
        None, "search", "Search algorithm, such as beam, greedy or sampling; chosen by the other options by default."
    )
    beam: int = _option(5, "search", "Beam size: hypotheses kept in search; 1 is greedy search.", ge=1, le=1000)
    nbest: int = _option(1, "nbest", "How many outputs to return for each input.", ge=1, le=1000)
    length_penalty: float = _option(
        1.0, "search", "Exponent of the length that scores are divided by; larger prefers longer outputs.", ge=0, le=10
    )
    coverage_penalty: float = _option(
        0.0, "search", "Above 0 prefers outputs that attend to the whole source.", ge=0, le=100
    )
    no_repeat_ngram_size: int = _option(
        0, "search", "Never repeat a run of this many tokens; 0 allows repetition.", ge=0, le=1000
    )
    beam_groups: int = _option(1, "search", "Diverse beam search: groups that the beam is divided into.", ge=1, le=1000)
    diversity_penalty: float = _option(
        0.5, "search", "Diverse beam search: penalty for a token that another group has just chosen.", ge=0, le=1000
    )
    max_length_ratio: float | None = _option(
        None, "search", "Output tokens per source token, at most; by the training data by default.", gt=0, le=1000
    )
    max_tokens: int = _option(64, "length", "Tokens to generate after the prompt, at most.", ge=1, le=1_000_000)
    temperature: float | None = _option(
        None, "sampling", "Sample tokens; below 1 is more predictable, above 1 more varied.", gt=0, lt=100
    )
    top_k: int | None = _option(None, "sampling", "Sample among the k most likely tokens.", ge=1, le=1_000_000_000)
    top_p: float | None = _option(
        None, "sampling", "Nucleus sampling: among the fewest tokens with this probability in all.", gt=0, le=1
    )
    seed: int = _option(1, "sampling", "Seed of the samples: the same seed gives the same output.")
    prefix: str = _option("", "prefix", "Text that every output begins with.")
    forbidden: tuple[str, ...] = _option((), "forbidden", "A word or phrase that must not be in the output.")
    required: tuple[str, ...] = _option((), "prefix", "A word or phrase that must be in the output.")
    glossary: dict[str, str] = _option({}, "glossary", "Source terms and their required translations.")
    to: str = _option("", "language", "Target language, for a model of several.")
    scores: bool = _option(False, "scores", "Return each output's score, and the log-probability of each token.")
    alignment: bool = _option(False, "alignment", "Return the word alignment.")
    attention: bool = _option(False, "attention", "Return the attention weights of every layer and head.")
    start: str = _option(
        "",
        "forecast",
        "First time to forecast, such as 2024-05-01; later rows are what came, for comparison. After the last row if "
        "not given.",
    )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Options by name. Raises RegardError, in one sentence, for unknown names and impossible values."""
        for name in values:
            if name not in cls.model_fields:
                raise RegardError(_unknown_option(name, list(cls.model_fields)))
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise RegardError(_error_message(error)) from None

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise RegardError(_error_message(error)) from None

    @field_validator("search")
    @classmethod
    def _search_is_registered(cls, name: str | None) -> str | None:
        known = selectable_searches()
        if name is not None and name not in known:
            raise ValueError(f"there is no search {name!r}; choose {', '.join(known[:-1])} or {known[-1]}")
        return name

    @field_validator("forbidden", "required", mode="before")
    @classmethod
    def _phrases(cls, value: Any) -> Any:
        if isinstance(value, str) or not isinstance(value, Collection) or isinstance(value, Mapping):
            raise ValueError("give a list of words or phrases, such as ['dog', 'in the park']")
        if not all(isinstance(each, str) for each in value):
            raise ValueError("give a list of words or phrases, such as ['dog', 'in the park']")
        return tuple(value)

    @field_validator(
        "beam", "nbest", "no_repeat_ngram_size", "beam_groups", "max_tokens", "top_k", "seed", mode="before"
    )
    @classmethod
    def _whole_number(cls, value: Any) -> Any:
        """Accepts NumPy's integers, but neither booleans nor 5.0."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return int(value) if hasattr(value, "__index__") else value

    @field_validator(
        "length_penalty", "coverage_penalty", "diversity_penalty", "max_length_ratio", "temperature", "top_p",
        mode="before",
    )  # fmt: skip
    @classmethod
    def _number(cls, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        return float(value) if hasattr(value, "__float__") else value

    @model_validator(mode="after")
    def _check_compatibility(self) -> Self:
        if self.search_name != "beam" and (self.required or self.glossary):
            name = "required" if self.required else "glossary"
            raise ValueError(f"{name}: this needs beam search; {self._leave_out_search}")
        if "diversity_penalty" in self.model_fields_set and self.beam_groups == 1:
            raise ValueError("diversity_penalty: this is for diverse beam search; set beam_groups above 1, too")
        for phrase in (*self.required, *self.glossary.values()):
            if phrase in self.forbidden:
                raise ValueError(f"{phrase!r} is both required and forbidden; leave one out")
        return self

    def with_changes(self, **changes: Any) -> Self:
        """The same options with some changed; what was set explicitly stays explicit. A default unsets an option."""
        values = {name: getattr(self, name) for name in self.model_fields_set} | changes
        unset = {name for name in changes if values[name] == type(self).model_fields[name].default}
        return self.from_dict({name: value for name, value in values.items() if name not in unset})

    @property
    def samples(self) -> bool:
        """Whether tokens are sampled."""
        return self.search_name == "sampling"

    @property
    def search_name(self) -> str:
        """The search algorithm, chosen by the other options unless it is named."""
        if self.search is not None:
            return self.search
        return "sampling" if any(getattr(self, name) is not None for name in SAMPLING) else "beam"

    @property
    def _leave_out_search(self) -> str:
        """The advice to leave out what chose the search."""
        found = [name for name in SAMPLING if getattr(self, name) is not None]
        if self.search is not None or not found:
            return "leave out search"
        return "leave out " + (f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else found[0])

    def check_groups(self, accepted: Collection[str], what: str) -> None:
        """Raise RegardError if an option was set that does not apply. what: such as "a run for tagging"."""
        for name in sorted(self.model_fields_set):
            if group_of(name) not in accepted:
                raise RegardError(f"{name}: this does not apply to {what}; leave it out.")

    def check_search(self) -> None:
        """Raise RegardError if an option was set that the search does not use."""
        for name in ignored_options(self.search_name):
            if name not in self.model_fields_set or getattr(self, name) is None:
                continue
            if name in (*SAMPLING, "seed"):
                advice = "set search to sampling" if self.search else "set temperature, top_k or top_p to sample"
            else:
                advice = self._leave_out_search
            raise RegardError(f"{name}: {self.search_name} search does not use it; leave it out, or {advice}.")

    @property
    def _beam(self) -> int:
        """The beam size; where none was set, at least as many as are returned."""
        if self.search == "greedy":
            return 1
        return self.beam if "beam" in self.model_fields_set else max(self.beam, self.nbest)

    def search_config(
        self, *, tokens_per_source_token: float, max_length: int, vocabulary: int, classes: bool = False
    ) -> SearchConfig:
        """The search settings for a model.

        max_length: of outputs, in tokens. vocabulary: the size of the target vocabulary. classes: it is a classifier.
        """
        if not classes:
            self.check_search()
        sampling = None
        if self.samples:
            sampling = Sampling(
                1.0 if self.temperature is None else self.temperature,
                self.top_k or 0,
                1.0 if self.top_p is None else self.top_p,
                self.seed,
            )
        return SearchConfig(
            search="classification" if classes else self.search or "",
            beam=self._beam,
            length_penalty=self.length_penalty,
            coverage_penalty=self.coverage_penalty,
            nbest=self.nbest,
            tokens_per_source_token=tokens_per_source_token,
            max_length=max_length,
            patient=vocabulary < SMALL_VOCABULARY,
            no_repeat_ngram_size=self.no_repeat_ngram_size,
            beam_groups=self.beam_groups,
            diversity_penalty=self.diversity_penalty,
            forbidden=self.forbidden,
            sampling=sampling,
            max_length_ratio=self.max_length_ratio,
        )


def group_of(name: str) -> str:
    """The group of an option."""
    extra = Options.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return str(extra["group"])


def options_in(groups: Collection[str]) -> list[str]:
    """The names of all options of these groups."""
    return [name for name in Options.model_fields if group_of(name) in groups]


def _unknown_option(name: str, known: list[str]) -> str:
    if name in OPTIONS:
        return f"{name}: this option is now called {OPTIONS[name]}."
    return f"{name}: there is no such option; there are {', '.join(known)}."


def _error_message(error: ValidationError) -> str:
    """A sentence about the first error, with the option's name and the possible values."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return _unknown_option(name, list(Options.model_fields))
    message = first["msg"].removeprefix("Value error, ")
    if not name:
        return f"{message.rstrip('.')}."
    if first["type"] == "value_error":
        return f"{name}: {message.rstrip('.')}."
    rejected = f"{first['input']!r} is not possible; " if not isinstance(first["input"], dict | list | tuple) else ""
    return f"{name}: {rejected}it must be {_expected(name, first)}."


def _expected(name: str, error: Any) -> str:
    """The values that an option takes, as a phrase."""
    field = Options.model_fields[name]
    bounds: dict[str, Any] = {}
    for each in field.metadata:
        bounds |= {key: getattr(each, key) for key in ("ge", "gt", "le", "lt") if getattr(each, key, None) is not None}
    kind = str(field.annotation)
    if error["type"] in ("int_type", "int_from_float", "int_parsing"):
        return "a whole number"
    if error["type"] in ("float_type", "finite_number"):
        return "a number"
    if "dict" in kind:
        return "terms and their translations, such as {'dog': 'Hund'}"
    if error["type"] in ("bool_type",):
        return "true or false"
    if error["type"] == "string_type":
        return "text"
    if not bounds:
        return "another value"
    low = f"at least {bounds['ge']:,}" if "ge" in bounds else f"above {bounds['gt']:,}" if "gt" in bounds else ""
    high = f"at most {bounds['le']:,}" if "le" in bounds else f"below {bounds['lt']:,}" if "lt" in bounds else ""
    return " and ".join(each for each in (low, high) if each)
