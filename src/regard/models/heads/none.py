"""No decoder: the encoder's output is the result."""

from torch import Tensor, nn

from regard.models.outputs import DecoderOutput, EncoderOutput


class IdentityHead(nn.Module):
    """Memory -> its own states as features."""

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets, which are ignored -> the encoder's states."""
        return DecoderOutput(memory.states)
