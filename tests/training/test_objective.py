"""What is minimised."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.batching import load_batch
from regard.models.dropout import Dropout
from regard.training.objective import Objective, loss_of, taught
from tests.training.small import small_run


@pytest.mark.parametrize("preset", ["bahdanau", "luong-local", "conv", "transformer-tiny"])
def test_the_loss_is_smoothed_cross_entropy_over_real_tokens(preset: str, tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, preset, smoothing=0.2)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(7))
    loss = loss_of(objective, batch)
    logits = bundle.model.logits(bundle.model(batch.source, batch.mask, batch.before).features)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.after.flatten(), ignore_index=0, label_smoothing=0.2, reduction="sum"
    )
    plain = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.after.flatten(), ignore_index=0, reduction="sum"
    )
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-4)
    assert loss.entropy.item() == pytest.approx(plain.item(), rel=1e-4)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("preset", ["bahdanau", "luong", "luong-local", "conv", "transformer-tiny"])
def test_attention_is_taught_where_to_look(preset: str, twice: bool, tmp_path: Path) -> None:
    """The loss grows by the guidance times the cross-entropy between guide and weights; and the weights follow."""
    settings, corpus, bundle = small_run(
        tmp_path, preset, guidance=0.3, precision="float32", smoothing=0.0, agreement=0.0
    )
    batch = load_batch(corpus, corpus.train, np.arange(6))
    guide = torch.zeros(*batch.after.shape, batch.source.shape[1])
    guide[:, 1:4, 2] = 0.5
    guide[:, 1:4, 3] = 0.5
    objective = Objective(bundle.model, settings.training).train()
    for module in bundle.model.modules():
        if isinstance(module, Dropout):
            module.probability = 0.0
    choice = taught(settings.model)
    assert choice.shifted == (preset == "transformer-tiny")

    def looked() -> torch.Tensor:
        """The row of each step; of a Transformer, of the step after it."""
        weights = bundle.model(batch.source, batch.mask, batch.before, need_weights=True).cross_attention[choice.layer]
        found = weights[:, choice.head or 0].double()
        return found.roll(-1, 1) if choice.shifted else found

    plain, led = (loss_of(objective, each, twice=twice) for each in (batch, replace(batch, guide=guide)))
    expected = -0.3 * (guide.double() * (looked() + 1e-6).log()).sum()
    assert (led.total - plain.total).item() == pytest.approx(expected.item(), rel=1e-3)
    assert led.entropy.item() == pytest.approx(plain.entropy.item(), rel=1e-6)
    optimiser = torch.optim.Adam(bundle.model.parameters(), lr=0.01)
    before = looked()[:, 1:4, 2:4].sum(-1).mean().item()
    for _ in range(30):
        optimiser.zero_grad()
        loss_of(objective, replace(batch, guide=guide), twice=twice).total.backward()
        optimiser.step()
    after = looked()[:, 1:4, 2:4].sum(-1).mean().item()
    assert after > min(0.9, before + 0.2)


def test_judging_teaches_nothing(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "bahdanau", guidance=0.3)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(6))
    led = replace(batch, guide=torch.ones(*batch.after.shape, batch.source.shape[1]))
    assert loss_of(objective, led).total.item() == loss_of(objective, batch).total.item()


def test_two_passes_without_dropout_agree_already(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "transformer-tiny", agreement=5.0)
    objective = Objective(bundle.model, settings.training).eval()
    batch = load_batch(corpus, corpus.train, np.arange(5))
    assert loss_of(objective, batch, twice=True).total.item() == pytest.approx(
        loss_of(objective, batch).total.item(), rel=1e-4
    )


def test_two_passes_with_dropout_differ_and_cost(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "transformer-tiny", agreement=5.0, precision="float32")
    objective = Objective(bundle.model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(5))
    torch.manual_seed(1)
    both = loss_of(objective, batch, twice=True)
    alone = objective.settings.model_copy(update={"agreement": 0.0})
    objective.settings = alone
    torch.manual_seed(1)
    free = loss_of(objective, batch, twice=True)
    assert both.entropy.item() == pytest.approx(free.entropy.item(), rel=1e-5)
    assert both.total.item() > free.total.item() * 1.001


def test_what_hard_attention_drew_is_learnt_from(tmp_path: Path) -> None:
    """Without REINFORCE the score would get no gradient at all."""
    settings, corpus, bundle = small_run(tmp_path, "hard")
    decoder = settings.model.decoder.model_copy(update={"estimator": "reinforce"})
    model_settings = settings.model.model_copy(update={"decoder": decoder})
    model = type(bundle.model)(
        model_settings,
        source_vocabulary=bundle.model.source_vocabulary,
        target_vocabulary=bundle.model.target_vocabulary,
    )
    objective = Objective(model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(9))
    loss_of(objective, batch).total.backward()
    score = model.decoder.attention.score
    assert score.weight_query.grad.abs().max() > 0
    assert objective.reinforce.baseline.item() != 0


def test_looks_that_leave_out_or_come_back_cost_what_the_papers_say(tmp_path: Path) -> None:
    """A hand calculation over two steps and three places, of which the last is padding."""
    settings, _, bundle = small_run(tmp_path, "bahdanau", attend_everywhere=2.0, attend_once=3.0)
    objective = Objective(bundle.model, settings.training)
    weights = torch.tensor([[[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]])
    mask, there = torch.tensor([[True, True, False]]), torch.tensor([[True, True]])
    # Places got 1.25 and 0.75: (1 - 1.25)² + (1 - 0.75)² = 0.125. The second step comes back to 0.5 and 0.25.
    assert objective._spread(weights, mask, there).item() == pytest.approx(2 * 0.125 + 3 * 0.75)
    # A step that is padding does not look.
    first = torch.tensor([[True, False]])
    assert objective._spread(weights, mask, first).item() == pytest.approx(2 * (0.25**2 + 0.75**2))


@pytest.mark.parametrize("twice", [False, True])
def test_a_penalty_changes_the_loss_in_training_only(tmp_path: Path, twice: bool) -> None:
    settings, corpus, bundle = small_run(tmp_path, "bahdanau", precision="float32")
    batch = load_batch(corpus, corpus.train, np.arange(6))
    plain = Objective(bundle.model, settings.training)
    paying = Objective(bundle.model, settings.training.model_copy(update={"attend_once": 1.0}))
    for training in (True, False):
        losses = []
        for objective in (plain, paying):
            objective.train(training)
            torch.manual_seed(2)
            losses.append(loss_of(objective, batch, twice=twice and training).total.item())
        assert (losses[1] > losses[0] + 1e-3) == training


def test_a_model_that_copies_learns_to_copy(tmp_path: Path) -> None:
    settings, corpus, bundle = small_run(tmp_path, "pointer-generator", smoothing=0.1)
    objective = Objective(bundle.model, settings.training).train()
    batch = load_batch(corpus, corpus.train, np.arange(6))
    loss = loss_of(objective, batch)
    with torch.no_grad():
        objective.eval()
        judged = loss_of(objective, batch)
        decoded = bundle.model(batch.source, batch.mask, batch.before)
        logs = bundle.model.scores(decoded, batch.source).gather(2, batch.after[..., None])[..., 0]
        assert judged.entropy.item() == pytest.approx(-logs[batch.after != 0].sum().item(), rel=1e-4)
    loss.total.backward()
    assert bundle.model.decoder.own.weight.grad.abs().max() > 0
