"""Text as a source: tokens of a vocabulary."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from regard.errors import RegardError
from regard.models.settings.components import SOURCES, Size, SourceSettings, StemOptions

if TYPE_CHECKING:
    from regard.models.stems import Stem


@SOURCES.register("text")
class TextSource(SourceSettings):
    """Subwords.

    segments: such as a story and a question, each with an embedding of its own. sentence_segments: each sentence is a
    segment, and segments are counted back from the last one. unit: the positions to attend to: every token, or
    sentences only, each the sum of its tokens, as in memory networks. bos: a beginning-of-sequence token precedes every
    source, which comes to stand for the whole, as BERT has it. separators: how many separator tokens there are between
    two segments; RoBERTa has two.
    """

    description: ClassVar[str] = "text"
    is_text: ClassVar[bool] = True

    kind: Literal["text"] = "text"
    segments: Size = 1
    sentence_segments: bool = False
    unit: Literal["token", "sentence"] = "token"
    bos: bool = False
    separators: Literal[1, 2] = 1

    @model_validator(mode="after")
    def _check_segments(self) -> "TextSource":
        if self.sentence_segments and self.segments < 2:
            raise RegardError("sentence_segments = true needs segments: the number of sentence embeddings, such as 64")
        if self.unit == "sentence" and not self.sentence_segments:
            raise RegardError("unit = sentence needs sentence_segments = true")
        return self

    @property
    def reads_sentences(self) -> bool:
        return self.unit == "sentence"

    @property
    def segments_of_text(self) -> int:
        return self.segments

    @property
    def splits_sentences(self) -> bool:
        return self.sentence_segments

    @property
    def segment_separators(self) -> int:
        return self.separators

    @property
    def starts_with_bos(self) -> bool:
        return self.bos

    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        from regard.models.token_embedding import Embedding

        return Embedding.from_options(
            vocabulary,
            options,
            segments=self.segments,
            count_back=self.sentence_segments,
            sentences_only=self.reads_sentences,
        )
