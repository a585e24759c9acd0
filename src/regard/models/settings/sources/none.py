"""No source: a language model."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings.components import SOURCES, SourceSettings, StemOptions

if TYPE_CHECKING:
    from regard.models.stems import Stem


@SOURCES.register("none")
class NoSource(SourceSettings):
    """There is no source: the decoder continues a text. bos: a beginning-of-sequence token precedes it."""

    description: ClassVar[str] = "nothing"
    is_empty: ClassVar[bool] = True

    kind: Literal["none"] = "none"
    bos: bool = True

    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        from regard.models.stems.none import EmptyStem

        return EmptyStem(options.width)
