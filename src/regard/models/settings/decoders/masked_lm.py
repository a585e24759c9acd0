"""Settings of the head that predicts masked tokens."""

from typing import ClassVar, Literal

from regard.models.settings._per_position import PerPositionHeadSettings
from regard.models.settings.components import DECODERS


@DECODERS.register("masked-lm")
class MaskedLMHeadSettings(PerPositionHeadSettings):
    """Tokens that were masked in the source (BERT, Devlin et al. 2018, arXiv:1810.04805).

    next_sentence: also predict, at the beginning-of-sequence token, whether the second segment follows the first.
    """

    masked_lm: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = True
    predicts: ClassVar[str] = "tokens"

    kind: Literal["masked-lm"] = "masked-lm"
    next_sentence: bool = False

    @property
    def next_sentence_prediction(self) -> bool:
        return self.next_sentence
