"""How inputs are encoded for a model: what differs between texts, media and prompts."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from regard.data.target_languages import language_tokens
from regard.data.vocabulary import SourceInput
from regard.inference.inputs.request import Request
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Result
from regard.inference.search_config import Constraints
from regard.views.notebook import AttentionView

INVALID_TEXT = "it is not UTF-8, or has half a character (a lone surrogate)"


class Inputs(Protocol):
    """One kind of input."""

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input of another type."""
        ...

    def split_into_chunks(self, item: Any) -> list[tuple[str, bool]]:
        """Chunks of an input that are translated one by one, each with whether it is copied instead; empty if the input
        is translated as a whole."""
        ...

    def split_at_placeholders(self, item: Any) -> list[tuple[str, bool]]:
        """Chunks of an input whose placeholders the model could not preserve: its placeholders are copied."""
        ...

    def requests(self, inputs: Sequence[Any], options: Options) -> list[Request]:
        """Every input, encoded."""
        ...

    def length(self, tokens: SourceInput) -> int:
        """About how many positions an encoded input has; below 2 for an empty one."""
        ...

    def originals(self, item: Any) -> tuple[str, ...]:
        """The placeholders that symbols among an input's tokens stand for."""
        ...

    def source_and_target(
        self, source: Any, target: str | Result | None, to: str, predict: Callable[[Any], Result]
    ) -> tuple[SourceInput, list[int]]:
        """The tokens of an input and of a target: a given one, a result, or its own prediction. Raises RegardError."""
        ...

    def check_attribution(self) -> None:
        """Raise RegardError if gradients cannot be taken with respect to such inputs."""
        ...

    def add_source_media(self, view: AttentionView, item: Any) -> AttentionView:
        """Captured attention with what only the input itself has, such as the audio of a recording."""
        ...

    @property
    def example(self) -> Any:
        """An input to warm up with."""
        ...


def constraints_from_options(run: LoadedRun, options: Options) -> Constraints:
    """The constraints that the options put on every output."""
    language = language_tokens(options.to, run.description.target_languages, run.target_vocabulary)
    if not (options.prefix or options.required or language):
        return Constraints()
    required = [run.target_tokens(each) for each in options.required]
    prefix = (*language, *run.target_tokens(options.prefix))
    return Constraints(prefix=prefix, required=tuple(filter(None, required)))
