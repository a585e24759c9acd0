"""No normalizer: linear attention (Katharopoulos et al. 2020, arXiv:2006.16236)."""

from torch import Tensor

from regard.attention import reference
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_weights


@NORMALIZERS.register("none")
class Raw(Normalizer):
    """The scores themselves."""

    formula = "sⱼ"
    summary = "the raw scores are the weights"
    paper = "Katharopoulos et al. 2020, arXiv:2006.16236"
    use = 'attend(q, k, v, normalize="none")'
    order = 6

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(scores, allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.none(scores, allowed)
