"""The training objective: the main loss of the targets, and the loss terms that the settings add to it."""

from dataclasses import replace

import torch
from torch import nn

from regard.alignment.alignment_head import AlignmentHead
from regard.attention import Reinforce
from regard.data.batch import Batch
from regard.errors import RegardError
from regard.models.outputs import Packing
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.special_tokens import PAD
from regard.training.loss import LOSSES, ForwardPass, Loss
from regard.training.loss_terms.base import LossTerm
from regard.training.loss_terms.cross_attention import Coverage, DoublyStochastic, GuidedAlignment
from regard.training.loss_terms.hard_attention import HardAttention
from regard.training.loss_terms.next_sentence import NextSentence
from regard.training.precision import matmul_precision, resolve_precision
from regard.training.settings import TrainingSettings


class Objective(nn.Module):
    """A model and its loss as one module, which DistributedDataParallel can wrap."""

    def __init__(self, model: Seq2Seq, settings: TrainingSettings, loss: str = "cross-entropy") -> None:
        """loss: the name of the main loss."""
        super().__init__()
        self.model, self.settings = model, settings
        self.precision = resolve_precision(settings.precision, next(model.parameters()).device)
        self.reinforce = Reinforce()
        self.main_loss = LOSSES.get(loss).build(model.settings, settings)
        if settings.rdrop_weight and not self.main_loss.supports_rdrop:
            raise RegardError(f"training.rdrop_weight: the loss {loss} does not compare two passes; leave it out.")
        self.terms = loss_terms(model.settings, settings, self.reinforce)

    def forward(self, batch: Batch, passes: int = 1) -> Loss:
        """The loss of a batch. passes: 2 for two passes with different dropout (R-Drop)."""
        with matmul_precision(self.precision if self.training else "float32"):
            forward = self._forward_pass(batch, passes)
            loss = self.main_loss(forward)
            if not self.training:
                return loss
            terms = [term(forward, loss) for term in self.terms]
            return loss._replace(total=sum((each for each in terms if each is not None), loss.total))

    def _forward_pass(self, batch: Batch, passes: int) -> ForwardPass:
        source, mask, decoder_input = batch.source, batch.mask, batch.decoder_input
        packing = batch.packing
        if passes == 2:
            # Both passes in one: dropout differs between the halves because it counts elements.
            source, mask, decoder_input = (torch.cat([each] * 2) for each in (source, mask, decoder_input))
            packing = None if packing is None else packing.repeat()
        needs_weights = self.training and any(term.needs_weights and term.applies_to(batch) for term in self.terms)
        # Several texts share a row of the source, or else of the target.
        packs_source = not self.model.settings.decoder.autoregressive
        encoded = self.model.encode(source, mask, packing=packing if packs_source else None)
        decoder_packing: dict[str, Packing] = {} if packing is None or packs_source else {"packing": packing}
        decoded = self.model.decoder(decoder_input, encoded, **decoder_packing, need_weights=needs_weights)
        bfloat16 = self.training and self.precision == "bfloat16"
        return ForwardPass(self.model, batch, encoded, decoded, batch.labels != PAD, passes, bfloat16)


def loss_terms(model: ModelSettings, settings: TrainingSettings, reinforce: Reinforce) -> list[LossTerm]:
    """The loss terms that are added to the main loss."""
    terms: list[LossTerm] = [
        GuidedAlignment(settings.alignment_weight, guided_head(model)),
        NextSentence(1.0),
        HardAttention(reinforce),
    ]
    if settings.doubly_stochastic:
        terms.append(DoublyStochastic(settings.doubly_stochastic))
    if settings.coverage_loss:
        terms.append(Coverage(settings.coverage_loss))
    return terms


def batch_loss(objective: nn.Module, batch: Batch, *, passes: int = 1) -> Loss:
    """The loss of one batch. Its word alignment is used in training only."""
    loss: Loss = objective(batch if objective.training else replace(batch, alignment=None), passes)
    return loss


def guided_head(settings: ModelSettings) -> AlignmentHead:
    """The head that guided alignment trains: the first one of the penultimate layer.

    A Transformer aligns a token in the step that has this token as its input (Chen et al. 2020, arXiv:2004.14837), and
    uses other heads to predict the next token. Other models have one head for both.
    """
    decoder = settings.decoder
    head = 0 if getattr(decoder, "heads", 1) > 1 else None
    return AlignmentHead(max(0, decoder.attention_layers - 2), head, shifted=decoder.attends_after_input)
