"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT whose position ids start after that of padding."""

from regard.interop.families._encoder import MaskedLMHead
from regard.interop.families.bert import Bert
from regard.interop.family import FAMILIES


@FAMILIES.register("roberta")
class Roberta(Bert):
    special_tokens = {  # noqa: RUF012
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "mask_token": "<mask>",
    }
    bos_and_eos = ("bos_token", "eos_token")
    exports = None
    prefix = "roberta."
    ends_between_segments = 2

    @property
    def first_position(self) -> int:
        return max(0, int(self.config.get("pad_token_id", 1)) + 1)

    def has_masked_lm_head(self, names: set[str]) -> bool:
        return "lm_head.bias" in names

    def masked_lm_head(self) -> MaskedLMHead:
        return MaskedLMHead(
            dense="lm_head.dense",
            norm="lm_head.layer_norm",
            output="lm_head.decoder",
            bias="lm_head.bias",
            activation="gelu",
            norm_epsilon=self.config.get("layer_norm_eps", 1e-12),
        )

    def has_sequence_classifier(self, names: set[str], prefix: str) -> bool:
        return "classifier.out_proj.weight" in names

    def sequence_classifier_head(self, prefix: str) -> tuple[str, str]:
        return "classifier.dense", "classifier.out_proj"
