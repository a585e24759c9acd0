"""Search: the best there is, for every decoder, in any company."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.results import Hypothesis, SearchConfig
from regard.inference.search_algorithm import search
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.special_tokens import BEGIN, END, PAD
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
every_kind = pytest.mark.parametrize("decoder", DECODER_KINDS)


def lively(pair: Pair, seed: int = 0) -> Seq2Seq:
    """A model that is sure enough to have no ties, and that ends now and then."""
    model = random_model(pair, seed=seed, std=0.5)
    if model.output.bias is not None:
        with torch.no_grad():
            model.output.bias[END] += 2.5
    return model


def varied(pair: Pair) -> Seq2Seq:
    """The first of these models that says different things about different sources."""
    source, mask, _ = random_batch([5, 1, 7, 3, 4, 6, 9, 2], [1] * 8)
    for seed in range(100):
        model = lively(pair, seed)
        said = {str(best.tokens) for (best,) in search(model, source, mask, SearchConfig(1, max_length=9))}
        if len(said) > 3:
            return model
    raise AssertionError("all of them say the same about everything")


def tiny(decoder: str, words: int, seed: int) -> Seq2Seq:
    """A model with so many words beside the four special entries."""
    given_ = {"encoder": ENCODERS["recurrent"], "decoder": DECODERS[decoder], "tie": "none"}
    torch.manual_seed(seed)
    model = Seq2Seq(ModelSettings.parse(given_), source_vocabulary=11, target_vocabulary=4 + words)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5)
    return model.eval()


@torch.no_grad()
def log_probabilities(model: Seq2Seq, source: Tensor, mask: Tensor, tokens: list[list[int]]) -> list[float]:
    """Of each output of one source [1, Ts], by forced passes over all of them at once."""
    longest = max(map(len, tokens))
    before, after = torch.full((len(tokens), longest), PAD), torch.full((len(tokens), longest), PAD)
    for row, sequence in enumerate(tokens):
        before[row, : len(sequence)] = torch.tensor([BEGIN, *sequence[:-1]])
        after[row, : len(sequence)] = torch.tensor(sequence)
    rows = len(tokens)
    sources = source.expand(rows, -1)
    logits = model.scores(model(sources, mask.expand(rows, -1), before), sources)
    logits[..., [PAD, BEGIN]] = -torch.inf  # nobody ever says them
    logs = logits.log_softmax(-1)
    each = logs.double().gather(-1, after[..., None])[..., 0]
    return [each[row, : len(sequence)].sum().item() for row, sequence in enumerate(tokens)]


@torch.no_grad()
def next_words(model: Seq2Seq, source: Tensor, mask: Tensor, said: list[list[int]]) -> Tensor:
    """Log-probabilities [n, V] of what follows each of the beginnings, all equally long."""
    before = torch.tensor([[BEGIN, *words] for words in said])
    rows = len(said)
    sources = source.expand(rows, -1)
    logits = model.scores(model(sources, mask.expand(rows, -1), before), sources)[:, -1]
    logits[:, [PAD, BEGIN]] = -torch.inf
    return logits.log_softmax(-1).double()


def plain_greedy(model: Seq2Seq, source: Tensor, mask: Tensor, limit: int) -> list[int]:
    said: list[int] = []
    while len(said) < limit - 1 and END not in said:
        logs = next_words(model, source, mask, [said])[0]
        logs[[PAD, BEGIN]] = -torch.inf
        said.append(int(logs.argmax()))
    return said if END in said else [*said, END]


def plain_beam(
    model: Seq2Seq, source: Tensor, mask: Tensor, limit: int, beam: int, length_penalty: float
) -> list[tuple[float, list[int]]]:
    """Beam search with lists: what ends among the best `beam` is put aside, the best `beam` others go on.

    Until as many have ended, and none that goes on is ahead of the last of the best of them.
    """
    going: list[tuple[float, list[int]]] = [(0.0, [])]
    found: list[tuple[float, list[int]]] = []

    def score(one: tuple[float, list[int]]) -> float:
        return one[0] / len(one[1]) ** length_penalty

    while going and (len(found) < beam or score(going[0]) > sorted(map(score, found))[-beam]):
        logs = next_words(model, source, mask, [words for _, words in going])
        last = len(going[0][1]) + 1 == limit
        more = [
            (total + logs[row, word].item(), [*words, word])
            for row, (total, words) in enumerate(going)
            for word in range(logs.shape[1])
            if word == END or (word not in (PAD, BEGIN) and not last)
        ]
        more = sorted(more, reverse=True)[: 2 * beam]
        ended = [one for one in more[:beam] if one[1][-1] == END]
        found += ended
        going = [one for one in more if one[1][-1] != END][:beam]
    return sorted(((score(one), one[1]) for one in found), reverse=True)[:beam]


@pytest.mark.parametrize("pair", ONE_PER_DECODER, ids=pair_id)
def test_greedy_takes_the_best_word_each_time(pair: Pair) -> None:
    model = lively(pair)
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    found = search(model, source, mask, SearchConfig(beam=1, max_length=8))
    for row, (best,) in enumerate(found):
        one = slice(row, row + 1)
        assert best.tokens == plain_greedy(model, source[one], mask[one], 8)
        (total,) = log_probabilities(model, source[one], mask[one], [best.tokens])
        assert best.log_probability == pytest.approx(total, rel=1e-5, abs=1e-3)


@every_kind
@pytest.mark.parametrize("beam", [2, 5])
def test_beam_search_is_the_plain_one(decoder: str, beam: int) -> None:
    model = lively(("recurrent", decoder))
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    found = search(model, source, mask, SearchConfig(beam=beam, nbest=beam, max_length=7, length_penalty=0.6))
    for row, hypotheses in enumerate(found):
        expected = plain_beam(model, source[row : row + 1], mask[row : row + 1], 7, beam, 0.6)
        assert [h.tokens for h in hypotheses] == [words for _, words in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-3)


def test_bad_ends_found_early_do_not_end_the_search() -> None:
    """A model that is sure of each of twelve words, in a vocabulary so small that the end is always a candidate."""

    class Sure:
        def select(self, index: Tensor, *, same_sources: bool = False) -> "Sure":
            return self

    class Model:
        steps = 0

        def encode(self, source: Tensor, mask: Tensor) -> EncoderOutput:
            states = torch.zeros(1, 1, 4)
            return EncoderOutput(states=states, mask=mask, pooled=states[0], values=states)

        def start(self, memory: EncoderOutput) -> Sure:
            return Sure()

        def step(self, tokens: Tensor, state: Sure) -> tuple[Tensor, Sure]:
            self.steps += 1
            chances = torch.full((len(tokens), 7), 0.02)
            chances[:, END if self.steps > 12 else 4] = 0.88
            return chances.log(), state

    for beam in (2, 5):
        model: Any = Model()
        ((best,),) = search(model, torch.tensor([[4, END]]), torch.ones(1, 2, dtype=torch.bool), SearchConfig(beam))
        assert best.tokens == [4] * 12 + [END]


@pytest.mark.parametrize("decoder", ["cho", "bahdanau", "luong input feeding", "convolutional", "transformer"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_outputs(decoder: str, length_penalty: float) -> None:
    words, longest = 2, 4
    said = [1, *range(4, 4 + words)]  # unknown may be said, padding and beginning never
    everything = [[*some, END] for n in range(longest) for some in itertools.product(said, repeat=n)]
    for seed in range(3):
        model = tiny(decoder, words, seed)
        source, mask, _ = random_batch([5], [1], seed)
        totals = log_probabilities(model, source, mask, everything)
        scores = {tuple(e): t / len(e) ** length_penalty for e, t in zip(everything, totals, strict=True)}
        ranked = sorted(scores, key=lambda e: -scores[e])
        how = SearchConfig(len(everything), length_penalty, nbest=len(everything), max_length=longest)
        (found,) = search(model, source, mask, how)
        assert tuple(found[0].tokens) == ranked[0]
        assert {tuple(h.tokens) for h in found} == set(ranked), "nothing is lost"
        for hypothesis in found:
            assert hypothesis.score == pytest.approx(scores[tuple(hypothesis.tokens)], abs=1e-4)


@every_kind
@pytest.mark.parametrize("beam", [1, 4])
def test_company_changes_nothing(decoder: str, beam: int) -> None:
    for encoder in BASE_ENCODERS:
        model = varied((encoder, decoder))
        lengths = [1 + (7 * row) % 11 for row in range(64)]
        source, mask, _ = random_batch(lengths, [1] * 64)
        how = SearchConfig(beam, nbest=min(2, beam), max_length=9)

        def run(rows: Tensor, width: int) -> list[list[list[int]]]:
            found = search(model, source[rows, :width], mask[rows, :width], how)
            return [[h.tokens for h in each] for each in found]

        together = run(torch.arange(64), 11)
        order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
        assert run(order, 11) == [together[row] for row in order.tolist()]
        for row in range(0, 64, 9):
            assert run(torch.tensor([row]), lengths[row]) == [together[row]]
        assert len({str(each) for each in together}) > 3, "the sentences differ"


@every_kind
@given(
    beam=st.integers(2, 6),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    longest=st.integers(1, 7),
    seed=st.integers(0, 50),
)
@settings(max_examples=12)
def test_the_best_are_sorted_distinct_whole_and_no_longer_than_allowed(
    decoder: str, beam: int, lengths: list[int], longest: int, seed: int
) -> None:
    model = lively(("recurrent", decoder), seed % 3)
    source, mask, _ = random_batch(lengths, [1] * len(lengths), seed)
    for row, hypotheses in enumerate(search(model, source, mask, SearchConfig(beam, nbest=beam, max_length=longest))):
        assert 1 <= len(hypotheses) <= beam
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            assert hypothesis.tokens.index(END) == len(hypothesis.tokens) - 1 < longest
            assert not {PAD, BEGIN} & set(hypothesis.tokens)
            assert hypothesis.score == hypothesis.log_probability / len(hypothesis.tokens)
        one = slice(row, row + 1)
        forced = log_probabilities(model, source[one], mask[one], [h.tokens for h in hypotheses])
        assert [h.log_probability for h in hypotheses] == pytest.approx(forced, rel=1e-5, abs=1e-3)


@given(per_token=st.floats(0, 5), longest=st.integers(-3, 300), source=st.integers(1, 200))
def test_the_limit_grows_with_the_source_and_is_never_nothing(per_token: float, longest: int, source: int) -> None:
    how = SearchConfig(tokens_per_source_token=per_token, max_length=longest)
    assert 1 <= how.limit(source) <= max(1, longest)
    assert how.limit(source) <= how.limit(source + 1)


def test_each_source_has_its_own_limit() -> None:
    model = lively(("recurrent", "bahdanau"))
    with torch.no_grad():
        model.output.bias[END] = -1e4  # never ends by itself
    source, mask, _ = random_batch([7, 1, 3], [1, 1, 1])
    for beam in (1, 3):
        found = search(model, source, mask, SearchConfig(beam, tokens_per_source_token=6.0, max_length=60))
        assert [len(each[0].tokens) for each in found] == [60, 32, 60], "multiples of 32, or the longest there may be"
        found = search(model, source, mask, SearchConfig(beam, max_length_ratio=2.5, max_length=15))
        assert [len(each[0].tokens) for each in found] == [15, 3, 8], "to the letter"


@pytest.mark.parametrize("pair", [("recurrent", "bahdanau"), ("recurrent", "transformer"), ("recurrent", "cho")])
def test_the_coverage_penalty_ranks_as_computed_by_hand(pair: tuple[str, str]) -> None:
    source, mask, _ = random_batch([7, 4, 2], [1, 1, 1])
    changed = False
    for seed in range(4):
        model = lively(pair, seed)
        plain = search(model, source, mask, SearchConfig(4, nbest=4, max_length=6))
        covering = search(model, source, mask, SearchConfig(4, nbest=4, max_length=6, coverage_penalty=0.7))
        for row, hypotheses in enumerate(plain):
            one = slice(row, row + 1)
            scores = {}
            for hypothesis in hypotheses:
                before = torch.tensor([[BEGIN, *hypothesis.tokens[:-1]]])
                with torch.no_grad():
                    cross = model(source[one], mask[one], before, need_weights=True).cross_attention
                penalty = 0.0
                if cross:
                    got = cross[-1][0].mean(0).sum(0)[mask[row]].clamp(1e-6, 1)
                    penalty = got.log().sum().item()
                scores[tuple(hypothesis.tokens)] = hypothesis.score + 0.7 * penalty
            expected = sorted(scores.items(), key=lambda item: -item[1])
            assert [tuple(h.tokens) for h in covering[row]] == [tokens for tokens, _ in expected]
            assert [h.score for h in covering[row]] == pytest.approx([score for _, score in expected], abs=1e-3)
            assert {h.log_probability for h in covering[row]} == {h.log_probability for h in hypotheses}
            changed |= [h.tokens for h in covering[row]] != [h.tokens for h in hypotheses]
    assert changed == (pair[1] != "cho"), "the penalty matters where there is attention, and only there"


@pytest.mark.parametrize(("beam", "nbest"), [(0, 1), (-1, 1), (3, 4), (3, 0)])
def test_an_impossible_search_is_refused(beam: int, nbest: int) -> None:
    with pytest.raises(RegardError, match=r"(beam|nbest): .* is (not possible|too small)"):
        Options(beam=beam, nbest=nbest).search_config(tokens_per_source_token=2.0, max_length=20, vocabulary=5000)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_is_broken_still_answers_or_says_so(beam: int) -> None:
    """Weights with NaN must not become an IndexError far away."""
    model = lively(("recurrent", "bahdanau"))
    with torch.no_grad():
        model.output.bias[5] = torch.nan
    source, mask, _ = random_batch([4, 2], [1, 1])
    try:
        found: list[list[Hypothesis]] = search(model, source, mask, SearchConfig(beam, max_length=5))
    except ValueError:
        return
    assert all(found)


def test_search_moves_no_dice_and_leaves_no_gradients() -> None:
    model = lively(("recurrent", "before hard gumbel"))
    source, mask, _ = random_batch([4, 2], [1, 1])
    before = torch.get_rng_state()
    search(model, source, mask, SearchConfig(3, max_length=5))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
