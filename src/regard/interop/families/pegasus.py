"""Pegasus (Zhang et al. 2019, arXiv:1912.08777): Marian's architecture with norms before each sublayer."""

from pathlib import Path

from regard.interop.families.marian import Marian
from regard.interop.family import FAMILIES, Family
from regard.interop.tensor_map import TokenizerPair


@FAMILIES.register("pegasus")
class Pegasus(Marian):
    model_type = "pegasus"
    norm_first = True
    class_name = "PegasusForConditionalGeneration"

    def tokenizers(self, folder: Path) -> TokenizerPair:
        return Family.tokenizers(self, folder)

    def languages(self, folder: Path) -> tuple[str | None, str | None]:
        return None, None
