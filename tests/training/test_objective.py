"""The training objective: main losses and loss terms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.batch import Batch, load_batch
from regard.data.corpus import prepare
from regard.models.dropout import Dropout
from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.tasks.base import get_task
from regard.training.loss import ForwardPass, Loss
from regard.training.loss_terms.cross_attention import Coverage, DoublyStochastic
from regard.training.objective import Objective, batch_loss, guided_head
from regard.training.run import new_bundle
from regard.training.settings import run_settings
from tests.training.small_run import small_run


@pytest.mark.parametrize("preset", ["bahdanau", "luong-local", "conv", "transformer-tiny"])
def test_the_loss_is_smoothed_cross_entropy_without_padding(preset: str, tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, preset, label_smoothing=0.2)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(7))
    loss = batch_loss(objective, batch)
    logits = bundle.model.logits(bundle.model(batch.source, batch.mask, batch.decoder_input).features)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0, label_smoothing=0.2, reduction="sum"
    )
    plain = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0, reduction="sum"
    )
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-4)
    assert loss.cross_entropy.item() == pytest.approx(plain.item(), rel=1e-4)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("preset", ["bahdanau", "luong", "luong-local", "conv", "transformer-tiny"])
def test_guided_alignment_adds_a_cross_entropy_that_trains_the_attention(
    preset: str, twice: bool, tmp_path: Path
) -> None:
    """The loss grows by the weighted cross-entropy between guide and attention, and training shifts the attention."""
    settings, corpus, bundle = small_run(
        tmp_path, preset, alignment_weight=0.3, precision="float32", label_smoothing=0.0, rdrop_weight=0.0
    )
    batch = load_batch(corpus, corpus.train, np.arange(6))
    guide = torch.zeros(*batch.labels.shape, batch.source.shape[1])
    guide[:, 1:4, 2] = 0.5
    guide[:, 1:4, 3] = 0.5
    objective = Objective(bundle.model, settings.training).train()
    for module in bundle.model.modules():
        if isinstance(module, Dropout):
            module.probability = 0.0
    head = guided_head(settings.model)
    assert head.shifted == (preset == "transformer-tiny")

    def aligned_weights() -> torch.Tensor:
        """The attention at each target position; of a shifted head, one step later."""
        weights = bundle.model(batch.source, batch.mask, batch.decoder_input, need_weights=True).cross_attention[
            head.layer
        ]
        found = weights[:, head.head or 0].double()
        return found.roll(-1, 1) if head.shifted else found

    plain, guided = (
        batch_loss(objective, each, passes=2 if twice else 1) for each in (batch, replace(batch, alignment=guide))
    )
    expected = -0.3 * (guide.double() * (aligned_weights() + 1e-6).log()).sum()
    assert (guided.total - plain.total).item() == pytest.approx(expected.item(), rel=1e-3)
    assert guided.cross_entropy.item() == pytest.approx(plain.cross_entropy.item(), rel=1e-6)
    optimizer = torch.optim.Adam(bundle.model.parameters(), lr=0.01)
    before = aligned_weights()[:, 1:4, 2:4].sum(-1).mean().item()
    for _ in range(30):
        optimizer.zero_grad()
        batch_loss(objective, replace(batch, alignment=guide), passes=2 if twice else 1).total.backward()
        optimizer.step()
    after = aligned_weights()[:, 1:4, 2:4].sum(-1).mean().item()
    assert after > min(0.9, before + 0.2)


def test_the_validation_loss_ignores_word_alignment(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "bahdanau", alignment_weight=0.3)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(6))
    guided = replace(batch, alignment=torch.ones(*batch.labels.shape, batch.source.shape[1]))
    assert batch_loss(objective, guided).total.item() == batch_loss(objective, batch).total.item()


def test_rdrop_adds_nothing_without_dropout(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "transformer-tiny", rdrop_weight=5.0)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(5))
    assert batch_loss(objective, batch, passes=2).total.item() == pytest.approx(
        batch_loss(objective, batch).total.item(), rel=1e-4
    )


def test_rdrop_adds_a_penalty_with_dropout(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "transformer-tiny", rdrop_weight=5.0, precision="float32")
    objective = Objective(bundle.model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(5))
    torch.manual_seed(1)
    with_rdrop = batch_loss(objective, batch, passes=2)
    objective_without_rdrop = Objective(
        bundle.model, settings.training.model_copy(update={"rdrop_weight": 0.0})
    ).train()
    torch.manual_seed(1)
    without_rdrop = batch_loss(objective_without_rdrop, batch, passes=2)
    assert with_rdrop.cross_entropy.item() == pytest.approx(without_rdrop.cross_entropy.item(), rel=1e-5)
    assert with_rdrop.total.item() > without_rdrop.total.item() * 1.001


def test_hard_attention_is_trained_by_reinforce(tmp_path: Path) -> None:
    """Without REINFORCE the score would get no gradient at all."""
    settings, corpus, bundle = small_run(tmp_path, "hard")
    decoder = settings.model.decoder.model_copy(update={"estimator": "reinforce"})
    model_settings = settings.model.model_copy(update={"decoder": decoder})
    model = type(bundle.model)(
        model_settings,
        source_vocabulary_size=bundle.model.source_vocabulary_size,
        target_vocabulary_size=bundle.model.target_vocabulary_size,
    )
    objective = Objective(model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(9))
    batch_loss(objective, batch).total.backward()
    score = model.decoder.attention.score
    assert score.weight_query.grad.abs().max() > 0
    assert objective.reinforce.baseline.item() != 0


def test_doubly_stochastic_and_coverage_losses_match_a_hand_calculation(tmp_path: Path) -> None:
    """Two target steps and three source positions, of which the last is padding."""
    settings, _, bundle = small_run(tmp_path, "bahdanau", doubly_stochastic=2.0, coverage_loss=3.0)
    weights = torch.tensor([[[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]])
    mask, target_mask = torch.tensor([[True, True, False]]), torch.tensor([[True, True]])

    def total_loss(present: torch.Tensor) -> float:
        encoded = EncoderOutput(weights, mask, weights[:, 0], weights)
        decoded = DecoderOutput(weights, cross_attention=[weights[:, None]])
        batch = Batch(present, mask, present, present, np.arange(1))
        forward = ForwardPass(bundle.model, batch, encoded, decoded, present)
        zero_loss = Loss(torch.zeros(()), torch.zeros(()))
        terms = DoublyStochastic(settings.training.doubly_stochastic), Coverage(settings.training.coverage_loss)
        losses = [term(forward, zero_loss) for term in terms]
        return sum(loss.item() for loss in losses if loss is not None)

    # Positions got 1.25 and 0.75: (1 - 1.25)² + (1 - 0.75)² = 0.125. The second step repeats 0.5 and 0.25.
    assert total_loss(target_mask) == pytest.approx(2 * 0.125 + 3 * 0.75)
    # A step that is padding does not attend.
    assert total_loss(torch.tensor([[True, False]])) == pytest.approx(2 * (0.25**2 + 0.75**2))


@pytest.mark.parametrize("twice", [False, True])
def test_loss_terms_apply_in_training_only(tmp_path: Path, twice: bool) -> None:
    settings, corpus, bundle = small_run(tmp_path, "bahdanau", precision="float32")
    batch = load_batch(corpus, corpus.train, np.arange(6))
    plain = Objective(bundle.model, settings.training)
    with_coverage = Objective(bundle.model, settings.training.model_copy(update={"coverage_loss": 1.0}))
    for training in (True, False):
        losses = []
        for objective in (plain, with_coverage):
            objective.train(training)
            torch.manual_seed(2)
            losses.append(batch_loss(objective, batch, passes=2 if twice and training else 1).total.item())
        assert (losses[1] > losses[0] + 1e-3) == training


def test_the_copy_loss_matches_the_scores_and_trains_the_gate(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "pointer-generator", label_smoothing=0.1)
    objective = Objective(bundle.model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(6))
    loss = batch_loss(objective, batch)
    with torch.no_grad():
        objective.eval()
        evaluated = batch_loss(objective, batch)
        decoded = bundle.model(batch.source, batch.mask, batch.decoder_input)
        log_probs = bundle.model.scores(decoded, batch.source).gather(2, batch.labels[..., None])[..., 0]
        assert evaluated.cross_entropy.item() == pytest.approx(-log_probs[batch.labels != 0].sum().item(), rel=1e-4)
    loss.total.backward()
    assert bundle.model.decoder.copy_gate.weight.grad.abs().max() > 0


def test_rdrop_works_with_next_sentence_prediction(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"the {n}th line has some words and ends here\n" for n in range(60)))
    changes = ["model.source.segments=2", "model.decoder.next_sentence=true", "training.rdrop_weight=1.0"]
    small = ["model.encoder.width=16", "model.encoder.heads=2", "model.encoder.layers=1", "training.precision=float32"]
    options = {"data": {"text": [str(text)], "max_tokens": 32, "subwords": {"size": 320}}}
    settings = run_settings(None, {}, [*changes, *small], options, task="masked_lm")
    kind = get_task(settings.task).data()
    corpus = prepare(settings.data, tmp_path / "data", kind=kind, source=settings.model.source)
    bundle = new_bundle(settings, corpus, torch.device("cpu"))
    objective = Objective(bundle.model, settings.training).train()
    loss = batch_loss(objective, load_batch(corpus, corpus.train, np.arange(6)), passes=2)
    loss.total.backward()
    assert loss.total.isfinite()
    assert all(parameter.grad is not None for parameter in bundle.model.decoder.next_sentence.parameters())
