"""What holds for every encoder with every decoder, and for every preset."""

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
from regard.special_tokens import BEGIN
from tests.models.variants import (
    DECODERS,
    ENCODERS,
    EVERY_DECODER,
    EVERYTHING,
    PAIRS,
    SOURCES,
    TARGETS,
    Pair,
    batch,
    make,
    name_of,
)

WITHIN: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-5}
every_decoder = pytest.mark.parametrize("pair", EVERY_DECODER, ids=name_of)
every_model = pytest.mark.parametrize("pair", EVERYTHING, ids=name_of)
LENGTHS = [7, 3, 9, 1], [6, 4, 6, 2]


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, **WITHIN)


def decoder_of(pair: Pair) -> dict[str, Any]:
    return make(pair).settings.decoder.model_dump()


def steps(model: Seq2Seq, memory: EncoderOutput, targets: Tensor) -> Tensor:
    """Logits [B, Tt, V], one step after the other."""
    state, found = model.start(memory), []
    for tokens in targets.unbind(1):
        logits, state = model.step(tokens, state)
        found.append(logits)
    return torch.stack(found, 1)


@every_model
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode], ids=["gradients", "inference"])
def test_step_by_step_equals_all_at_once(pair: Pair, mode: Callable[[], Any]) -> None:
    model = make(pair)
    source, mask, targets = batch([7, 3, 9], [6, 6, 6])
    with mode():
        memory = model.encode(source, mask)
        whole = model.scores(model.decoder(targets, memory), source)
        close(steps(model, memory, targets).log_softmax(-1), whole.log_softmax(-1))


def check_padding(model: Seq2Seq, lengths: tuple[list[int], list[int]], seed: int) -> None:
    sources, targets_ = lengths
    source, mask, targets = batch(sources, targets_, seed)
    wider_source, wider_mask, wider_targets = batch(sources, targets_, seed, more=3)
    wider_source[~wider_mask] = 5  # the mask decides, not the token
    with torch.no_grad():
        whole, wider = model(source, mask, targets).features, model(wider_source, wider_mask, wider_targets).features
    for row, length in enumerate(targets_):
        close(wider[row, :length], whole[row, :length])


@every_model
def test_padding_never_changes_the_output(pair: Pair) -> None:
    check_padding(make(pair), LENGTHS, seed=0)
    check_padding(make(pair), ([5], [4]), seed=1)  # nothing was padded before


@given(
    pair=st.sampled_from(EVERYTHING),
    lengths=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 8)), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_padding_never_changes_the_output_of_any_batch(pair: Pair, lengths: list[tuple[int, int]], seed: int) -> None:
    check_padding(make(pair, seed=seed), ([s for s, _ in lengths], [t for _, t in lengths]), seed=seed)


@every_model
def test_a_sentence_alone_equals_itself_in_a_batch(pair: Pair) -> None:
    model = make(pair)
    source, mask, targets = batch(*LENGTHS)
    with torch.no_grad():
        together = model(source, mask, targets).features
        for row, (s, t) in enumerate(zip(*LENGTHS, strict=True)):
            one = slice(row, row + 1)
            close(model(source[one, :s], mask[one, :s], targets[one, :t]).features[0], together[row, :t])


@every_decoder
def test_what_comes_later_changes_nothing_before_it(pair: Pair) -> None:
    model = make(pair)
    source, mask, targets = batch([7, 3], [6, 6])
    other = targets.clone()
    other[:, 3:] = (targets[:, 3:] - 4 + 1) % 7 + 4
    with torch.no_grad():
        before, after = model(source, mask, targets).features, model(source, mask, other).features
    close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3], before[:, 3], **WITHIN), "the words that went before are read"


@every_model
def test_the_source_matters(pair: Pair) -> None:
    model = make(pair)
    source, mask, targets = batch([7], [4])
    other = (source - 4 + 1) % 7 + 4
    with torch.no_grad():
        assert not torch.allclose(model(source, mask, targets).features, model(other, mask, targets).features, **WITHIN)


@every_model
def test_every_parameter_gets_a_gradient(pair: Pair) -> None:
    model = make(pair, spread=0.15).train()
    source, mask, targets = batch([7, 3, 9, 5], [6, 4, 6, 3])
    torch.manual_seed(0)
    decoded = model(source, mask, targets)
    total = (model.scores(decoded, source) * torch.randn(model.target_vocabulary)).square().sum()
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
def test_asking_for_weights_changes_nothing(pair: Pair, training: bool) -> None:
    model = make(pair, dropout=0.2).train(training)
    source, mask, targets = batch(*LENGTHS)
    torch.manual_seed(1)
    without = model(source, mask, targets)
    torch.manual_seed(1)
    asked = model(source, mask, targets, need_weights=True)
    assert torch.equal(asked.features, without.features)
    assert not [*without.cross_attention, *without.self_attention, *without.encoder_attention]


@every_decoder
def test_weights_lie_on_real_places_and_sum_to_one(pair: Pair) -> None:
    model = make(pair)
    about = decoder_of(pair)
    source, mask, targets = batch(*LENGTHS)
    with torch.no_grad():
        cross = model(source, mask, targets, need_weights=True).cross_attention
    if about.get("attend") == "never":
        assert not cross
        return
    assert len(cross) == (1 if about["kind"] == "recurrent" else about["layers"])
    for weights in cross:
        assert weights.shape == (4, about.get("heads", 1), targets.shape[1], source.shape[1])
        assert (weights >= 0).all()
        assert not weights[~mask[:, None, None].expand_as(weights)].any()
        if about.get("normalize") == "sigmoid":
            continue
        total = weights.sum(-1)
        if about.get("extent") == "local-p":  # the Gaussian takes some away
            assert (total <= 1 + 1e-5).all()
        elif about.get("extent") == "local-m":  # a target may go on beyond its source's window
            assert ((total - 1).abs() < 1e-5)[total > 0].all()
            assert (total[:, :, 0] > 0).all()
        else:
            torch.testing.assert_close(total, torch.ones_like(total))


@every_model
def test_weights_among_a_side_s_own_words(pair: Pair) -> None:
    model = make(pair)
    source, mask, targets = batch(*LENGTHS)
    with torch.no_grad():
        decoded = model(source, mask, targets, need_weights=True)
    for name, side, weights, places in (
        ("encoder", model.settings.encoder, decoded.encoder_attention, mask),
        ("decoder", model.settings.decoder, decoded.self_attention, torch.ones_like(targets, dtype=torch.bool)),
    ):
        assert len(weights) == (side.layers if side.kind == "transformer" else 0)
        for each in weights:
            assert each.shape[2:] == (places.shape[1],) * 2
            assert not each[~places[:, None, None].expand_as(each)].any()
            assert name == "encoder" or not each.triu(1).any()


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_hard_attention_looks_at_one_place(place: str, estimator: str) -> None:
    model = make(("recurrent", f"{place} hard {estimator}"))
    source, mask, targets = batch(*LENGTHS)
    for training in (False, True):
        decoded = model.train(training)(source, mask, targets, need_weights=True)
        (weights,) = decoded.cross_attention
        torch.testing.assert_close(weights.amax(-1), torch.ones(4, 1, 6))
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 1, 6))
        steps_drawn = sum(draw.log_prob.shape[2] for draw in decoded.draws)
        assert steps_drawn == (6 if training and estimator == "reinforce" else 0)


def check_selection(pair: Pair, index: list[int], at: int) -> None:
    model = make(pair)
    source, mask, targets = batch([7, 3, 9, 1], [6, 6, 6, 6])
    where = torch.tensor(index)
    with torch.inference_mode():
        state = model.start(model.encode(source, mask))
        for tokens in targets[:, :at].unbind(1):
            state = model.step(tokens, state)[1]
        chosen = state.select(where)
        for tokens in targets[:, at:].unbind(1):
            logits, state = model.step(tokens, state)
            mine, chosen = model.step(tokens[where], chosen)
            close(mine, logits[where])


@every_decoder
@pytest.mark.parametrize("at", [0, 3])
def test_a_selected_state_goes_on_as_its_entries_would(pair: Pair, at: int) -> None:
    check_selection(pair, [2, 0, 0, 3, 1], at)


@given(
    pair=st.sampled_from(EVERYTHING),
    index=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    at=st.integers(0, 5),
)
def test_any_selection_of_a_state_goes_on_as_its_entries_would(pair: Pair, index: list[int], at: int) -> None:
    check_selection(pair, index, at)


@every_decoder
def test_with_the_same_sources_less_is_selected_and_nothing_changes(pair: Pair) -> None:
    model = make(pair)
    source, mask, targets = batch([7, 3], [5, 5])
    twice = torch.tensor([0, 0, 0, 1, 1, 1])
    order = torch.tensor([2, 0, 0, 4, 5, 4])
    targets = batch([1] * 6, [5] * 6, 1)[2]
    with torch.inference_mode():
        state = model.start(model.encode(source, mask).select(twice))
        for tokens in targets.unbind(1):
            less = model.step(tokens[order], state.select(order, same_sources=True))[0]
            close(less, model.step(tokens[order], state.select(order))[0])
            state = model.step(tokens, state)[1]


@every_decoder
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode], ids=["gradients", "inference"])
def test_an_older_state_stays_good(pair: Pair, mode: Callable[[], Any]) -> None:
    model = make(pair)
    source, mask, targets = batch([7, 3], [5, 5])
    with mode():
        state = model.step(targets[:, 0], model.start(model.encode(source, mask)))[1]
        first, after = model.step(targets[:, 1], state)
        model.step(targets[:, 2], after)
        model.step(targets[:, 3], state)  # another continuation
        assert torch.equal(model.step(targets[:, 1], state)[0], first)
        assert torch.equal(model.step(targets[:, 2], after)[0], model.step(targets[:, 2], after)[0])


@pytest.mark.parametrize("pair", PAIRS[:9], ids=name_of)
def test_dropout_is_fixed_by_the_seed(pair: Pair) -> None:
    model = make(pair, dropout=0.3).train()
    source, mask, targets = batch(*LENGTHS)

    def run(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(source, mask, targets).features

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


@pytest.mark.parametrize("name", [name for name, part in ENCODERS.items() if part["kind"] != "transformer"])
def test_an_encoders_memory_fits_what_it_says(name: str) -> None:
    model = make((name, "luong"))
    source, mask, _ = batch([4, 2], [1, 1])
    memory = model.encode(source, mask)
    assert memory.states.shape == memory.values.shape == (2, 4, model.encoder.memory_width)
    assert memory.pooled.shape == (2, model.encoder.memory_width)
    assert memory.attention_mask.shape == (2, 1, 1, 4)


def test_the_average_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0], [2.0], [100.0]], [[5.0], [9.0], [7.0]], [[1.0], [1.0], [1.0]]])
    mask = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    assert masked_mean(states, mask).flatten().tolist() == [1.5, 7.0, 0.0]


@pytest.mark.parametrize("pair", PAIRS[:9], ids=name_of)
def test_a_tied_target_is_one_matrix(pair: Pair) -> None:
    free, tied = make(pair, tie="none"), make(pair, tie="target")
    assert tied.output.weight is tied.decoder.embedding.weight
    assert "output.bias" not in dict(tied.named_parameters())
    assert free.output.weight is not free.decoder.embedding.weight
    E = tied.settings.decoder.embedding_width
    assert free.size - tied.size == TARGETS * E + TARGETS
    source, mask, targets = batch([4], [3])
    tied.logits(tied(source, mask, targets).features).sum().backward()
    torch.optim.SGD(tied.parameters(), lr=0.1).step()
    assert torch.equal(tied.output.weight, tied.decoder.embedding.weight)


def part_pair(encoder: str, decoder: str) -> dict[str, Any]:
    both = {"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder]}
    return {name: {**part, "embedding": 8} for name, part in both.items()}


@pytest.mark.parametrize(("encoder", "decoder"), [("recurrent", "bahdanau"), ("convolutional", "transformer")])
def test_tying_all_shares_one_table(encoder: str, decoder: str) -> None:
    settings_ = ModelSettings.parse({**part_pair(encoder, decoder), "tie": "all"})
    model = Seq2Seq(settings_, source_vocabulary=SOURCES, target_vocabulary=SOURCES)
    assert model.encoder.embedding.weight is model.decoder.embedding.weight is model.output.weight
    with pytest.raises(ValueError, match=r"^model.tie: .*not 11 and 13 entries; use joint subwords"):
        Seq2Seq(settings_, source_vocabulary=SOURCES, target_vocabulary=TARGETS)


@pytest.mark.parametrize("pair", PAIRS[:9], ids=name_of)
def test_the_size_is_known_without_making_the_model(pair: Pair) -> None:
    made = make(pair).settings
    model = Seq2Seq(made, source_vocabulary=17, target_vocabulary=17)
    assert count_parameters(made, 17) == model.size == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("decoder", ["learned", "convolutional"])
def test_a_place_that_was_not_learnt_is_refused_in_one_sentence(decoder: str) -> None:
    part = {**DECODERS[decoder], "max_positions": 3}
    model = Seq2Seq(
        ModelSettings.parse({"encoder": ENCODERS["recurrent"], "decoder": part}),
        source_vocabulary=SOURCES,
        target_vocabulary=TARGETS,
    ).eval()
    source, mask, targets = batch([4], [4])
    with pytest.raises(ValueError, match="position 3 is beyond the 3 positions"):
        model(source, mask, targets)
    state = model.start(model.encode(source, mask))
    for _ in range(3):
        state = model.step(torch.tensor([BEGIN]), state)[1]
    with pytest.raises(ValueError, match="position 3 is beyond the 3 positions"):
        model.step(torch.tensor([BEGIN]), state)
