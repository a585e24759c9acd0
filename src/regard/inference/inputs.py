"""How inputs become what a model reads: what differs between text, media and prompts."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from regard.data.target_languages import language_tokens
from regard.data.vocabulary import SourceInput
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.requests import Request
from regard.inference.results import Constraints, Result
from regard.views.notebook import AttentionView

INVALID_TEXT = "it is not UTF-8, or has half a character (a lone surrogate)"


class Inputs(Protocol):
    """One kind of input."""

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for what is no input of this model."""
        ...

    def split(self, given: Any) -> list[tuple[str, bool]]:
        """The parts of an input that are translated one by one, and whether each is kept as it is; empty if none."""
        ...

    def split_at_placeholders(self, given: Any) -> list[tuple[str, bool]]:
        """The parts of an input whose placeholders could not be kept otherwise."""
        ...

    def requests(self, inputs: Sequence[Any], options: Options) -> list[Request]:
        """Every input, encoded."""
        ...

    def length(self, tokens: SourceInput) -> int:
        """About how many positions an encoded input has; below 2 for an empty one."""
        ...

    def originals(self, given: Any) -> tuple[str, ...]:
        """The placeholders that symbols among an input's tokens stand for."""
        ...

    def source_and_target(
        self, source: Any, target: str | Result | None, to: str, predict: Callable[[Any], Result]
    ) -> tuple[SourceInput, list[int]]:
        """The tokens of an input and of a target, which is given, a result, or else predicted. Raises RegardError."""
        ...

    def check_attribution(self) -> None:
        """Raise RegardError if gradients cannot be taken with respect to such inputs."""
        ...

    def complete_view(self, view: AttentionView, given: Any) -> AttentionView:
        """Captured attention with what only the input itself has, such as the sound of a recording."""
        ...

    @property
    def example(self) -> Any:
        """An input to warm up with."""
        ...


def user_constraints(run: LoadedRun, options: Options) -> Constraints:
    """What the options demand of every output."""
    language = language_tokens(options.to, run.description.target_languages, run.target_side)
    if not (options.prefix or options.required or language):
        return Constraints()
    required = [run.target_tokens(each) for each in options.required]
    prefix = (*language, *run.target_tokens(options.prefix))
    return Constraints(prefix=prefix, required=tuple(filter(None, required)))
