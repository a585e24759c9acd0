"""Properties of every encoder with every decoder, and of every preset."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.models.outputs import EncoderOutput, masked_mean
from regard.models.parameter_count import count_parameters
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.special_tokens import BOS
from tests.models.variants import (
    ALL_MODELS,
    DECODERS,
    ENCODERS,
    ONE_PER_DECODER,
    PAIRS,
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    Pair,
    pair_id,
    random_batch,
    random_model,
)

TOLERANCE: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-5}
every_decoder = pytest.mark.parametrize("pair", ONE_PER_DECODER, ids=pair_id)
every_model = pytest.mark.parametrize("pair", ALL_MODELS, ids=pair_id)
LENGTHS = [7, 3, 9, 1], [6, 4, 6, 2]


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, **TOLERANCE)


def decoder_settings_of(pair: Pair) -> dict[str, Any]:
    return random_model(pair).settings.decoder.model_dump()


def logits_step_by_step(model: Seq2Seq, memory: EncoderOutput, targets: Tensor) -> Tensor:
    """Logits [B, Tt, V], one step after the other."""
    state, logits_by_step = model.start(memory), []
    for tokens in targets.unbind(1):
        logits, state = model.step(tokens, state)
        logits_by_step.append(logits)
    return torch.stack(logits_by_step, 1)


@every_model
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode], ids=["gradients", "inference"])
def test_step_equals_forward(pair: Pair, mode: Callable[[], Any]) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7, 3, 9], [6, 6, 6])
    with mode():
        memory = model.encode(source, mask)
        full = model.scores(model.decoder(targets, memory), source)
        close(logits_step_by_step(model, memory, targets).log_softmax(-1), full.log_softmax(-1))


def check_padding(model: Seq2Seq, lengths: tuple[list[int], list[int]], seed: int) -> None:
    source_lengths, target_lengths = lengths
    source, mask, targets = random_batch(source_lengths, target_lengths, seed)
    padded_source, padded_mask, padded_targets = random_batch(source_lengths, target_lengths, seed, padding=3)
    padded_source[~padded_mask] = 5  # the mask decides, not the token
    with torch.no_grad():
        full, padded = model(source, mask, targets).features, model(padded_source, padded_mask, padded_targets).features
    for row, length in enumerate(target_lengths):
        close(padded[row, :length], full[row, :length])


@every_model
def test_padding_never_changes_the_output(pair: Pair) -> None:
    check_padding(random_model(pair), LENGTHS, seed=0)
    check_padding(random_model(pair), ([5], [4]), seed=1)  # nothing was padded before


@given(
    pair=st.sampled_from(ALL_MODELS),
    lengths=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 8)), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_padding_never_changes_the_output_of_any_batch(pair: Pair, lengths: list[tuple[int, int]], seed: int) -> None:
    check_padding(random_model(pair, seed=seed), ([s for s, _ in lengths], [t for _, t in lengths]), seed=seed)


@every_model
def test_output_is_independent_of_the_batch(pair: Pair) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch(*LENGTHS)
    with torch.no_grad():
        batched = model(source, mask, targets).features
        for row, (s, t) in enumerate(zip(*LENGTHS, strict=True)):
            single = slice(row, row + 1)
            close(model(source[single, :s], mask[single, :s], targets[single, :t]).features[0], batched[row, :t])


@every_decoder
def test_features_do_not_depend_on_later_targets(pair: Pair) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7, 3], [6, 6])
    changed = targets.clone()
    changed[:, 3:] = (targets[:, 3:] - 4 + 1) % 7 + 4
    with torch.no_grad():
        original, next_state = model(source, mask, targets).features, model(source, mask, changed).features
    close(next_state[:, :3], original[:, :3])
    assert not torch.allclose(next_state[:, 3], original[:, 3], **TOLERANCE), "the previous tokens are read"


@every_model
def test_features_depend_on_the_source(pair: Pair) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7], [4])
    changed = (source - 4 + 1) % 7 + 4
    with torch.no_grad():
        assert not torch.allclose(
            model(source, mask, targets).features, model(changed, mask, targets).features, **TOLERANCE
        )


@every_model
def test_every_parameter_gets_a_gradient(pair: Pair) -> None:
    model = random_model(pair, std=0.15).train()
    source, mask, targets = random_batch([7, 3, 9, 5], [6, 4, 6, 3])
    torch.manual_seed(0)
    decoded = model(source, mask, targets)
    total = (model.scores(decoded, source) * torch.randn(model.target_vocabulary_size)).square().sum()
    for draw in decoded.draws:
        total = total + draw.log_prob.sum()
    total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # A key's bias adds the same number to all scores of a query, which softmax does not notice.
        assert parameter.grad.any() or name.endswith("key.bias"), name


@every_decoder
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_need_weights_does_not_change_the_output(pair: Pair, training: bool) -> None:
    model = random_model(pair, dropout=0.2).train(training)
    source, mask, targets = random_batch(*LENGTHS)
    torch.manual_seed(1)
    without_weights = model(source, mask, targets)
    torch.manual_seed(1)
    with_weights = model(source, mask, targets, need_weights=True)
    assert torch.equal(with_weights.features, without_weights.features)
    assert not [*without_weights.cross_attention, *without_weights.self_attention, *without_weights.encoder_attention]


@every_decoder
def test_weights_are_zero_at_padding_and_sum_to_one(pair: Pair) -> None:
    model = random_model(pair)
    decoder_settings = decoder_settings_of(pair)
    source, mask, targets = random_batch(*LENGTHS)
    with torch.no_grad():
        cross = model(source, mask, targets, need_weights=True).cross_attention
    if decoder_settings.get("attend") == "never":
        assert not cross
        return
    assert len(cross) == (1 if decoder_settings["kind"] == "recurrent" else decoder_settings["layers"])
    for weights in cross:
        assert weights.shape == (4, decoder_settings.get("heads", 1), targets.shape[1], source.shape[1])
        assert (weights >= 0).all()
        assert not weights[~mask[:, None, None].expand_as(weights)].any()
        if decoder_settings.get("normalize") == "sigmoid":
            continue
        total = weights.sum(-1)
        if decoder_settings.get("extent") == "local-p":  # the Gaussian takes some away
            assert (total <= 1 + 1e-5).all()
        elif decoder_settings.get("extent") == "local-m":  # a target may go on beyond its source's window
            assert ((total - 1).abs() < 1e-5)[total > 0].all()
            assert (total[:, :, 0] > 0).all()
        else:
            torch.testing.assert_close(total, torch.ones_like(total))


@every_model
def test_self_attention_weights_respect_masks(pair: Pair) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch(*LENGTHS)
    with torch.no_grad():
        decoded = model(source, mask, targets, need_weights=True)
    for name, component_settings, weights, present in (
        ("encoder", model.settings.encoder, decoded.encoder_attention, mask),
        ("decoder", model.settings.decoder, decoded.self_attention, torch.ones_like(targets, dtype=torch.bool)),
    ):
        assert len(weights) == (component_settings.layers if component_settings.kind == "transformer" else 0)
        for layer_weights in weights:
            assert layer_weights.shape[2:] == (present.shape[1],) * 2
            assert not layer_weights[~present[:, None, None].expand_as(layer_weights)].any()
            assert name == "encoder" or not layer_weights.triu(1).any()


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
@pytest.mark.parametrize("attend", ["before", "after"])
def test_hard_attention_attends_to_one_position(attend: str, estimator: str) -> None:
    model = random_model(("recurrent", f"{attend} hard {estimator}"))
    source, mask, targets = random_batch(*LENGTHS)
    for training in (False, True):
        decoded = model.train(training)(source, mask, targets, need_weights=True)
        (weights,) = decoded.cross_attention
        torch.testing.assert_close(weights.amax(-1), torch.ones(4, 1, 6))
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 1, 6))
        steps_drawn = sum(draw.log_prob.shape[2] for draw in decoded.draws)
        assert steps_drawn == (6 if training and estimator == "reinforce" else 0)


def check_selection(pair: Pair, index: list[int], step: int) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7, 3, 9, 1], [6, 6, 6, 6])
    index_tensor = torch.tensor(index)
    with torch.inference_mode():
        state = model.start(model.encode(source, mask))
        for tokens in targets[:, :step].unbind(1):
            state = model.step(tokens, state)[1]
        selected = state.select(index_tensor)
        for tokens in targets[:, step:].unbind(1):
            logits, state = model.step(tokens, state)
            selected_logits, selected = model.step(tokens[index_tensor], selected)
            close(selected_logits, logits[index_tensor])


@every_decoder
@pytest.mark.parametrize("step", [0, 3])
def test_selected_state_continues_like_its_entries(pair: Pair, step: int) -> None:
    check_selection(pair, [2, 0, 0, 3, 1], step)


@given(
    pair=st.sampled_from(ALL_MODELS),
    index=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    step=st.integers(0, 5),
)
def test_any_selected_state_continues_like_its_entries(pair: Pair, index: list[int], step: int) -> None:
    check_selection(pair, index, step)


@every_decoder
def test_same_sources_selection_equals_full_selection(pair: Pair) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7, 3], [5, 5])
    repeated = torch.tensor([0, 0, 0, 1, 1, 1])
    order = torch.tensor([2, 0, 0, 4, 5, 4])
    targets = random_batch([1] * 6, [5] * 6, 1)[2]
    with torch.inference_mode():
        state = model.start(model.encode(source, mask).select(repeated))
        for tokens in targets.unbind(1):
            same_source_logits = model.step(tokens[order], state.select(order, same_sources=True))[0]
            close(same_source_logits, model.step(tokens[order], state.select(order))[0])
            state = model.step(tokens, state)[1]


@every_decoder
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode], ids=["gradients", "inference"])
def test_states_are_not_modified_by_later_steps(pair: Pair, mode: Callable[[], Any]) -> None:
    model = random_model(pair)
    source, mask, targets = random_batch([7, 3], [5, 5])
    with mode():
        state = model.step(targets[:, 0], model.start(model.encode(source, mask)))[1]
        first, next_state = model.step(targets[:, 1], state)
        model.step(targets[:, 2], next_state)
        model.step(targets[:, 3], state)  # another continuation
        assert torch.equal(model.step(targets[:, 1], state)[0], first)
        assert torch.equal(model.step(targets[:, 2], next_state)[0], model.step(targets[:, 2], next_state)[0])


@pytest.mark.parametrize("pair", PAIRS[:9], ids=pair_id)
def test_dropout_is_reproducible_from_the_seed(pair: Pair) -> None:
    model = random_model(pair, dropout=0.3).train()
    source, mask, targets = random_batch(*LENGTHS)

    def run(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(source, mask, targets).features

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


@pytest.mark.parametrize("name", [name for name, component in ENCODERS.items() if component["kind"] != "transformer"])
def test_encoder_output_has_the_declared_memory_width(name: str) -> None:
    model = random_model((name, "luong"))
    source, mask, _ = random_batch([4, 2], [1, 1])
    memory = model.encode(source, mask)
    assert memory.states.shape == memory.values.shape == (2, 4, model.encoder.memory_width)
    assert memory.pooled.shape == (2, model.encoder.memory_width)
    assert memory.attention_mask.shape == (2, 1, 1, 4)


def test_masked_mean_ignores_padding() -> None:
    states = torch.tensor([[[1.0], [2.0], [100.0]], [[5.0], [9.0], [7.0]], [[1.0], [1.0], [1.0]]])
    mask = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    assert masked_mean(states, mask).flatten().tolist() == [1.5, 7.0, 0.0]


@pytest.mark.parametrize("pair", PAIRS[:9], ids=pair_id)
def test_tied_target_embedding_is_the_output_weight(pair: Pair) -> None:
    free, tied = random_model(pair, tie="none"), random_model(pair, tie="target")
    assert tied.output.weight is tied.decoder.embedding.weight
    assert "output.bias" not in dict(tied.named_parameters())
    assert free.output.weight is not free.decoder.embedding.weight
    E = tied.settings.decoder.embedding_width
    assert free.size - tied.size == TARGET_VOCABULARY * E + TARGET_VOCABULARY
    source, mask, targets = random_batch([4], [3])
    tied.logits(tied(source, mask, targets).features).sum().backward()
    torch.optim.SGD(tied.parameters(), lr=0.1).step()
    assert torch.equal(tied.output.weight, tied.decoder.embedding.weight)


def components_with_equal_embeddings(encoder: str, decoder: str) -> dict[str, Any]:
    components = {"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder]}
    return {name: {**component, "embedding": 8} for name, component in components.items()}


@pytest.mark.parametrize(("encoder", "decoder"), [("recurrent", "bahdanau"), ("convolutional", "transformer")])
def test_tie_all_shares_one_embedding(encoder: str, decoder: str) -> None:
    settings = ModelSettings.parse({**components_with_equal_embeddings(encoder, decoder), "tie": "all"})
    model = Seq2Seq(settings, source_vocabulary_size=SOURCE_VOCABULARY, target_vocabulary_size=SOURCE_VOCABULARY)
    assert model.encoder.embedding.weight is model.decoder.embedding.weight is model.output.weight
    with pytest.raises(ValueError, match=r"^model.tie: .*not 11 and 13 entries; use joint subwords"):
        Seq2Seq(settings, source_vocabulary_size=SOURCE_VOCABULARY, target_vocabulary_size=TARGET_VOCABULARY)


@pytest.mark.parametrize("pair", PAIRS[:9], ids=pair_id)
def test_count_parameters_equals_model_size(pair: Pair) -> None:
    settings = random_model(pair).settings
    model = Seq2Seq(settings, source_vocabulary_size=17, target_vocabulary_size=17)
    assert count_parameters(settings, 17) == model.size == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("decoder", ["learned", "convolutional"])
def test_position_beyond_learned_positions_raises(decoder: str) -> None:
    component = {**DECODERS[decoder], "max_positions": 3}
    model = Seq2Seq(
        ModelSettings.parse({"encoder": ENCODERS["recurrent"], "decoder": component}),
        source_vocabulary_size=SOURCE_VOCABULARY,
        target_vocabulary_size=TARGET_VOCABULARY,
    ).eval()
    source, mask, targets = random_batch([4], [4])
    with pytest.raises(ValueError, match="position 3 is beyond the 3 positions"):
        model(source, mask, targets)
    state = model.start(model.encode(source, mask))
    for _ in range(3):
        state = model.step(torch.tensor([BOS]), state)[1]
    with pytest.raises(ValueError, match="position 3 is beyond the 3 positions"):
        model.step(torch.tensor([BOS]), state)
