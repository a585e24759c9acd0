"""Greedy and beam search: equal to reference implementations for every decoder, and batch-invariant."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.results import Hypothesis
from regard.inference.search.batch_search import search
from regard.inference.search_config import SearchConfig
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.special_tokens import BOS, EOS, PAD
from tests.models.variants import (
    BASE_ENCODERS,
    DECODERS,
    ENCODERS,
    ONE_PER_DECODER,
    Pair,
    pair_id,
    random_batch,
    random_model,
)

DECODER_KINDS = [
    "sutskever",
    "cho",
    "bahdanau",
    "luong input feeding",
    "before local-p",
    "convolutional",
    "transformer",
    "rotary",
]
every_decoder = pytest.mark.parametrize("decoder", DECODER_KINDS)


def confident_model(pair: Pair, seed: int = 0) -> Seq2Seq:
    """A random model with distinct probabilities, whose outputs end now and then."""
    model = random_model(pair, seed=seed, std=0.5)
    if model.output.bias is not None:
        with torch.no_grad():
            model.output.bias[EOS] += 2.5
    return model


def varied_model(pair: Pair) -> Seq2Seq:
    """The first random model whose outputs differ between sources."""
    source, mask, _ = random_batch([5, 1, 7, 3, 4, 6, 9, 2], [1] * 8)
    for seed in range(100):
        model = confident_model(pair, seed)
        outputs = {str(best.tokens) for (best,) in search(model, source, mask, SearchConfig(1, max_length=9))}
        if len(outputs) > 3:
            return model
    raise AssertionError("all models give the same output for every source")


def tiny_model(decoder: str, size: int, seed: int) -> Seq2Seq:
    """A model with this many tokens besides the four special ones."""
    settings_values = {"encoder": ENCODERS["recurrent"], "decoder": DECODERS[decoder], "tie": "none"}
    torch.manual_seed(seed)
    model = Seq2Seq(ModelSettings.parse(settings_values), source_vocabulary_size=11, target_vocabulary_size=4 + size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5)
    return model.eval()


@torch.no_grad()
def log_probabilities(model: Seq2Seq, source: Tensor, mask: Tensor, tokens: list[list[int]]) -> list[float]:
    """The log-probability of each output for one source [1, Ts], by one forced pass over all of them."""
    max_length = max(map(len, tokens))
    before, after = torch.full((len(tokens), max_length), PAD), torch.full((len(tokens), max_length), PAD)
    for row, sequence in enumerate(tokens):
        before[row, : len(sequence)] = torch.tensor([BOS, *sequence[:-1]])
        after[row, : len(sequence)] = torch.tensor(sequence)
    rows = len(tokens)
    sources = source.expand(rows, -1)
    logits = model.scores(model(sources, mask.expand(rows, -1), before), sources)
    logits[..., [PAD, BOS]] = -torch.inf  # never generated
    logs = logits.log_softmax(-1)
    each = logs.double().gather(-1, after[..., None])[..., 0]
    return [each[row, : len(sequence)].sum().item() for row, sequence in enumerate(tokens)]


@torch.no_grad()
def next_log_probabilities(model: Seq2Seq, source: Tensor, mask: Tensor, prefixes: list[list[int]]) -> Tensor:
    """Log-probabilities [n, V] of the next token after each prefix; the prefixes are equally long."""
    before = torch.tensor([[BOS, *prefix] for prefix in prefixes])
    rows = len(prefixes)
    sources = source.expand(rows, -1)
    logits = model.scores(model(sources, mask.expand(rows, -1), before), sources)[:, -1]
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(-1).double()


def reference_greedy(model: Seq2Seq, source: Tensor, mask: Tensor, limit: int) -> list[int]:
    tokens: list[int] = []
    while len(tokens) < limit - 1 and EOS not in tokens:
        logs = next_log_probabilities(model, source, mask, [tokens])[0]
        logs[[PAD, BOS]] = -torch.inf
        tokens.append(int(logs.argmax()))
    return tokens if EOS in tokens else [*tokens, EOS]


def reference_beam(
    model: Seq2Seq, source: Tensor, mask: Tensor, limit: int, beam: int, length_penalty: float
) -> list[tuple[float, list[int]]]:
    """Beam search with lists: hypotheses that end among the best `beam` are collected, the best `beam` others continue,
    until `beam` have ended and no unfinished one scores better than the last of the best of them.
    """
    unfinished: list[tuple[float, list[int]]] = [(0.0, [])]
    found: list[tuple[float, list[int]]] = []

    def score(hypothesis: tuple[float, list[int]]) -> float:
        return hypothesis[0] / len(hypothesis[1]) ** length_penalty

    while unfinished and (len(found) < beam or score(unfinished[0]) > sorted(map(score, found))[-beam]):
        logs = next_log_probabilities(model, source, mask, [tokens for _, tokens in unfinished])
        last = len(unfinished[0][1]) + 1 == limit
        continuations = [
            (total + logs[row, token].item(), [*tokens, token])
            for row, (total, tokens) in enumerate(unfinished)
            for token in range(logs.shape[1])
            if token == EOS or (token not in (PAD, BOS) and not last)
        ]
        continuations = sorted(continuations, reverse=True)[: 2 * beam]
        found += [hypothesis for hypothesis in continuations[:beam] if hypothesis[1][-1] == EOS]
        unfinished = [hypothesis for hypothesis in continuations if hypothesis[1][-1] != EOS][:beam]
    return sorted(((score(hypothesis), hypothesis[1]) for hypothesis in found), reverse=True)[:beam]


@pytest.mark.parametrize("pair", ONE_PER_DECODER, ids=pair_id)
def test_greedy_search_takes_the_most_likely_token_at_each_step(pair: Pair) -> None:
    model = confident_model(pair)
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    found = search(model, source, mask, SearchConfig(beam=1, max_length=8))
    for row, (best,) in enumerate(found):
        row_slice = slice(row, row + 1)
        assert best.tokens == reference_greedy(model, source[row_slice], mask[row_slice], 8)
        (total,) = log_probabilities(model, source[row_slice], mask[row_slice], [best.tokens])
        assert best.log_probability == pytest.approx(total, rel=1e-5, abs=1e-3)


@every_decoder
@pytest.mark.parametrize("beam", [2, 5])
def test_beam_search_equals_the_reference_implementation(decoder: str, beam: int) -> None:
    model = confident_model(("recurrent", decoder))
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    found = search(model, source, mask, SearchConfig(beam=beam, nbest=beam, max_length=7, length_penalty=0.6))
    for row, hypotheses in enumerate(found):
        expected = reference_beam(model, source[row : row + 1], mask[row : row + 1], 7, beam, 0.6)
        assert [h.tokens for h in hypotheses] == [tokens for _, tokens in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-3)


def test_bad_hypotheses_that_end_early_do_not_end_a_patient_search() -> None:
    """Twelve tokens with high probability, in a vocabulary so small that EOS is always a candidate."""

    class ConstantState:
        def select(self, index: Tensor, *, same_sources: bool = False) -> "ConstantState":
            return self

    class Model:
        steps = 0

        def encode(self, source: Tensor, mask: Tensor) -> EncoderOutput:
            states = torch.zeros(1, 1, 4)
            return EncoderOutput(states=states, mask=mask, pooled=states[0], values=states)

        def start(self, memory: EncoderOutput) -> ConstantState:
            return ConstantState()

        def step(self, tokens: Tensor, state: ConstantState) -> tuple[Tensor, ConstantState]:
            self.steps += 1
            probabilities = torch.full((len(tokens), 7), 0.02)
            probabilities[:, EOS if self.steps > 12 else 4] = 0.88
            return probabilities.log(), state

    for beam in (2, 5):
        model: Any = Model()
        ((best,),) = search(model, torch.tensor([[4, EOS]]), torch.ones(1, 2, dtype=torch.bool), SearchConfig(beam))
        assert best.tokens == [4] * 12 + [EOS]


@pytest.mark.parametrize("decoder", ["cho", "bahdanau", "luong input feeding", "convolutional", "transformer"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_outputs(decoder: str, length_penalty: float) -> None:
    size, max_length = 2, 4
    allowed = [1, *range(4, 4 + size)]  # UNK may be generated, PAD and BOS never
    all_outputs = [[*tokens, EOS] for n in range(max_length) for tokens in itertools.product(allowed, repeat=n)]
    for seed in range(3):
        model = tiny_model(decoder, size, seed)
        source, mask, _ = random_batch([5], [1], seed)
        totals = log_probabilities(model, source, mask, all_outputs)
        scores = {tuple(e): t / len(e) ** length_penalty for e, t in zip(all_outputs, totals, strict=True)}
        ranked = sorted(scores, key=lambda e: -scores[e])
        config = SearchConfig(len(all_outputs), length_penalty, nbest=len(all_outputs), max_length=max_length)
        (found,) = search(model, source, mask, config)
        assert tuple(found[0].tokens) == ranked[0]
        assert {tuple(h.tokens) for h in found} == set(ranked), "all outputs are found"
        for hypothesis in found:
            assert hypothesis.score == pytest.approx(scores[tuple(hypothesis.tokens)], abs=1e-4)


@every_decoder
@pytest.mark.parametrize("beam", [1, 4])
def test_search_is_batch_invariant(decoder: str, beam: int) -> None:
    for encoder in BASE_ENCODERS:
        model = varied_model((encoder, decoder))
        lengths = [1 + (7 * row) % 11 for row in range(64)]
        source, mask, _ = random_batch(lengths, [1] * 64)
        config = SearchConfig(beam, nbest=min(2, beam), max_length=9)

        def run(rows: Tensor, width: int) -> list[list[list[int]]]:
            found = search(model, source[rows, :width], mask[rows, :width], config)
            return [[h.tokens for h in each] for each in found]

        together = run(torch.arange(64), 11)
        order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
        assert run(order, 11) == [together[row] for row in order.tolist()]
        for row in range(0, 64, 9):
            assert run(torch.tensor([row]), lengths[row]) == [together[row]]
        assert len({str(each) for each in together}) > 3, "the outputs differ"


@every_decoder
@given(
    beam=st.integers(2, 6),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    max_length=st.integers(1, 7),
    seed=st.integers(0, 50),
)
@settings(max_examples=12)
def test_hypotheses_are_sorted_distinct_complete_and_within_the_limit(
    decoder: str, beam: int, lengths: list[int], max_length: int, seed: int
) -> None:
    model = confident_model(("recurrent", decoder), seed % 3)
    source, mask, _ = random_batch(lengths, [1] * len(lengths), seed)
    for row, hypotheses in enumerate(
        search(model, source, mask, SearchConfig(beam, nbest=beam, max_length=max_length))
    ):
        assert 1 <= len(hypotheses) <= beam
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            assert hypothesis.tokens.index(EOS) == len(hypothesis.tokens) - 1 < max_length
            assert not {PAD, BOS} & set(hypothesis.tokens)
            assert hypothesis.score == hypothesis.log_probability / len(hypothesis.tokens)
        row_slice = slice(row, row + 1)
        forced = log_probabilities(model, source[row_slice], mask[row_slice], [h.tokens for h in hypotheses])
        assert [h.log_probability for h in hypotheses] == pytest.approx(forced, rel=1e-5, abs=1e-3)


@given(per_token=st.floats(0, 5), max_length=st.integers(-3, 300), source=st.integers(1, 200))
def test_the_length_limit_grows_with_the_source_and_is_positive(per_token: float, max_length: int, source: int) -> None:
    config = SearchConfig(tokens_per_source_token=per_token, max_length=max_length)
    assert 1 <= config.limit(source) <= max(1, max_length)
    assert config.limit(source) <= config.limit(source + 1)


def test_each_source_has_its_own_length_limit() -> None:
    model = confident_model(("recurrent", "bahdanau"))
    with torch.no_grad():
        model.output.bias[EOS] = -1e4  # never ends by itself
    source, mask, _ = random_batch([7, 1, 3], [1, 1, 1])
    for beam in (1, 3):
        found = search(model, source, mask, SearchConfig(beam, tokens_per_source_token=6.0, max_length=60))
        assert [len(each[0].tokens) for each in found] == [60, 32, 60], "multiples of 32, or max_length"
        found = search(model, source, mask, SearchConfig(beam, max_length_ratio=2.5, max_length=15))
        assert [len(each[0].tokens) for each in found] == [15, 3, 8], "exact limits"


@pytest.mark.parametrize("pair", [("recurrent", "bahdanau"), ("recurrent", "transformer"), ("recurrent", "cho")])
def test_the_coverage_penalty_equals_its_formula(pair: tuple[str, str]) -> None:
    source, mask, _ = random_batch([7, 4, 2], [1, 1, 1])
    changed = False
    for seed in range(4):
        model = confident_model(pair, seed)
        plain = search(model, source, mask, SearchConfig(4, nbest=4, max_length=6))
        with_penalty = search(model, source, mask, SearchConfig(4, nbest=4, max_length=6, coverage_penalty=0.7))
        for row, hypotheses in enumerate(plain):
            row_slice = slice(row, row + 1)
            scores = {}
            for hypothesis in hypotheses:
                before = torch.tensor([[BOS, *hypothesis.tokens[:-1]]])
                with torch.no_grad():
                    cross = model(source[row_slice], mask[row_slice], before, need_weights=True).cross_attention
                penalty = 0.0
                if cross:
                    coverage = cross[-1][0].mean(0).sum(0)[mask[row]].clamp(1e-6, 1)
                    penalty = coverage.log().sum().item()
                scores[tuple(hypothesis.tokens)] = hypothesis.score + 0.7 * penalty
            expected = sorted(scores.items(), key=lambda item: -item[1])
            assert [tuple(h.tokens) for h in with_penalty[row]] == [tokens for tokens, _ in expected]
            assert [h.score for h in with_penalty[row]] == pytest.approx([score for _, score in expected], abs=1e-3)
            assert {h.log_probability for h in with_penalty[row]} == {h.log_probability for h in hypotheses}
            changed |= [h.tokens for h in with_penalty[row]] != [h.tokens for h in hypotheses]
    assert changed == (pair[1] != "cho"), "the penalty affects models with attention only"


@pytest.mark.parametrize(("beam", "nbest"), [(0, 1), (-1, 1), (3, 4), (3, 0)])
def test_impossible_beam_sizes_are_rejected(beam: int, nbest: int) -> None:
    with pytest.raises(RegardError, match=r"(beam|nbest): .* is (not possible|too small)"):
        Options(beam=beam, nbest=nbest).search_config(tokens_per_source_token=2.0, max_length=20, vocabulary=5000)


@pytest.mark.parametrize("beam", [1, 3])
def test_weights_with_nan_give_outputs_or_a_clear_error(beam: int) -> None:
    """Weights with NaN must not become an IndexError far away."""
    model = confident_model(("recurrent", "bahdanau"))
    with torch.no_grad():
        model.output.bias[5] = torch.nan
    source, mask, _ = random_batch([4, 2], [1, 1])
    try:
        found: list[list[Hypothesis]] = search(model, source, mask, SearchConfig(beam, max_length=5))
    except ValueError:
        return
    assert all(found)


def test_search_leaves_the_random_state_and_gradients_unchanged() -> None:
    model = confident_model(("recurrent", "before hard gumbel"))
    source, mask, _ = random_batch([4, 2], [1, 1])
    before = torch.get_rng_state()
    search(model, source, mask, SearchConfig(3, max_length=5))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
