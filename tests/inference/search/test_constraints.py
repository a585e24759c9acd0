"""Constraints, sampling and diverse beam search, for every kind of decoder; all are batch-invariant."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.inference.options import Options
from regard.inference.search.batch_search import search
from regard.inference.search_config import Constraints, Sampling, SearchConfig
from regard.special_tokens import BOS, EOS, PAD
from tests.inference.search.test_search import (
    DECODER_KINDS,
    confident_model,
    log_probabilities,
    next_log_probabilities,
    tiny_model,
    varied_model,
)
from tests.models.variants import random_batch

every_decoder = pytest.mark.parametrize("decoder", DECODER_KINDS)
CONFIGS = {
    "greedy": SearchConfig(1, max_length=9),
    "beam": SearchConfig(4, nbest=2, max_length=9),
    "diverse": SearchConfig(4, nbest=4, max_length=9, beam_groups=2),
    "sampling": SearchConfig(1, nbest=3, max_length=9, sampling=Sampling(temperature=1.2)),
}
every_search = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def token_lists(hypotheses: list) -> list[list[list[int]]]:
    return [[hypothesis.tokens for hypothesis in each] for each in hypotheses]


@every_decoder
@every_search
def test_constrained_searches_are_batch_invariant(decoder: str, config: SearchConfig) -> None:
    model = varied_model(("recurrent", decoder))
    lengths = [1 + (7 * row) % 11 for row in range(12)]
    source, mask, _ = random_batch(lengths, [1] * 12)
    constraints = [
        Constraints(
            prefix=(5, 6)[: row % 3],
            counts={7: row % 2, 8: 1} if row % 4 == 1 else {},
            required=((9, 5),) if row % 5 == 2 and config.sampling is None else (),
        )
        for row in range(12)
    ]
    config = replace(config, no_repeat_ngram_size=2)

    def run(rows: list[int], width: int) -> list[list[list[int]]]:
        return token_lists(
            search(model, source[rows, :width], mask[rows, :width], config, [constraints[row] for row in rows])
        )

    together = run(list(range(12)), 11)
    in_reverse_order = run(list(range(12))[::-1], 11)[::-1]
    assert in_reverse_order == together
    for row in range(12):
        assert run([row], lengths[row]) == [together[row]]
        own = constraints[row]
        for tokens in together[row]:
            assert tuple(tokens[: len(own.prefix)]) == own.prefix
            counts = Counter(tokens)
            assert all(counts[token] == count for token, count in own.counts.items())
            for phrase in own.required:
                assert any(tuple(tokens[at : at + 2]) == phrase for at in range(len(tokens)))


@every_decoder
@every_search
def test_no_ngram_is_repeated(decoder: str, config: SearchConfig) -> None:
    model = confident_model(("recurrent", decoder))
    with torch.no_grad():
        model.output.bias[EOS] = -1e4  # never ends before the limit
    source, mask, _ = random_batch([7, 3], [1, 1])
    repeats = 0
    for n in (1, 2, 3):
        for each in search(model, source, mask, replace(config, no_repeat_ngram_size=n, max_length=8)):
            for hypothesis in each:
                tokens = hypothesis.tokens[:-1]
                runs = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
                assert len(set(runs)) == len(runs)
        for each in search(model, source, mask, replace(config, max_length=8)):
            for hypothesis in each:
                tokens = hypothesis.tokens[:-1]
                runs = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
                repeats += len(set(runs)) < len(runs)
    assert repeats, "without the constraint some are repeated"


@every_decoder
def test_samples_follow_their_probabilities(decoder: str) -> None:
    """First tokens over many seeds, against the probabilities of the model."""
    model = confident_model(("recurrent", decoder))
    source, mask, _ = random_batch([4], [1])
    logs = next_log_probabilities(model, source, mask, [[]])[0]
    logs[[PAD, BOS]] = -torch.inf
    for options, temperature, allowed in (
        (Sampling(), 1.0, 99),
        (Sampling(temperature=0.5), 0.5, 99),
        (Sampling(top_k=3), 1.0, 3),
    ):
        ranked = logs.argsort(descending=True)[:allowed]
        expected = torch.zeros_like(logs)
        expected[ranked] = (logs[ranked] / temperature).softmax(-1)
        samples: Counter[int] = Counter()
        for seed in range(10):
            sampling = Sampling(options.temperature, options.top_k, options.top_p, seed)
            (found,) = search(model, source, mask, SearchConfig(1, nbest=100, max_length=2, sampling=sampling))
            samples.update(hypothesis.tokens[0] for hypothesis in found)
        for token, probability in enumerate(expected.tolist()):
            assert abs(samples[token] / 1000 - probability) < 0.06  # almost four standard deviations
            assert probability > 0 or not samples[token]


def test_top_p_samples_from_the_smallest_nucleus() -> None:
    model = confident_model(("recurrent", "bahdanau"))
    source, mask, _ = random_batch([4], [1])
    probabilities = next_log_probabilities(model, source, mask, [[]])[0].exp()
    probabilities[[PAD, BOS]] = 0
    probabilities /= probabilities.sum()
    ranked = probabilities.sort(descending=True)
    for top_p in (0.05, 0.5, 0.9):
        count = int((ranked.values.cumsum(0) < top_p).sum()) + 1
        sampling = Sampling(top_p=top_p)
        (found,) = search(model, source, mask, SearchConfig(1, nbest=300, max_length=2, sampling=sampling))
        sampled = {hypothesis.tokens[0] for hypothesis in found}
        assert sampled <= set(ranked.indices[:count].tolist())
        assert len(sampled) > 1 or count == 1


def test_samples_are_reproducible_by_their_seed() -> None:
    model = varied_model(("recurrent", "transformer"))
    source, mask, _ = random_batch([4, 6], [1, 1])

    def run(seed: int, nbest: int = 4) -> list[list[list[int]]]:
        return token_lists(
            search(model, source, mask, SearchConfig(1, nbest=nbest, max_length=9, sampling=Sampling(seed=seed)))
        )

    assert run(1) == run(1) != run(2)
    assert [each[:2] for each in run(1)] == run(1, 2), "more samples do not change the first ones"
    (samples, _) = run(1, 8)
    assert len({str(tokens) for tokens in samples}) > 3


def test_samples_have_the_log_probability_of_the_model() -> None:
    model = confident_model(("recurrent", "luong input feeding"))
    source, mask, _ = random_batch([4], [1])
    config = SearchConfig(1, nbest=5, max_length=6, sampling=Sampling(temperature=2.0, top_k=5))
    (found,) = search(model, source, mask, config)
    expected = log_probabilities(model, source, mask, [h.tokens for h in found])
    assert [h.log_probability for h in found] == pytest.approx(expected, abs=1e-3)


def reference_diverse_beam(model, source: Tensor, mask: Tensor, config: SearchConfig) -> list[list[int]]:
    """Groups of beam 1 with lists: tokens that a group chooses are penalized in the groups after it."""
    hypotheses: list[tuple[float, list[int]]] = [(0.0, [])] * config.beam_groups
    for step in range(config.max_length):
        chosen_counts: Counter[int] = Counter()
        for group, (total, tokens) in enumerate(hypotheses):
            if tokens[-1:] == [EOS]:
                continue
            logs = next_log_probabilities(model, source, mask, [tokens])[0]
            logs[[PAD, BOS]] = -torch.inf
            if step == config.max_length - 1:
                logs[[token for token in range(len(logs)) if token != EOS]] = -torch.inf
            penalties = torch.tensor([config.diversity_penalty * chosen_counts[token] for token in range(len(logs))])
            token = int((logs - penalties).argmax())
            if token != EOS:
                chosen_counts[token] += 1
            hypotheses[group] = (total + float(logs[token]), [*tokens, token])
    ranked = sorted(hypotheses, key=lambda hypothesis: -hypothesis[0] / len(hypothesis[1]))
    return [tokens for rank, (_, tokens) in enumerate(ranked) if tokens not in [other for _, other in ranked[:rank]]]


@every_decoder
def test_diverse_beam_search_equals_the_reference_implementation(decoder: str) -> None:
    model = varied_model(("recurrent", decoder))
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    config = SearchConfig(3, nbest=3, max_length=7, beam_groups=3, diversity_penalty=1.5, patient=False)
    for row, tokens in enumerate(token_lists(search(model, source, mask, config))):
        assert tokens == reference_diverse_beam(model, source[row : row + 1], mask[row : row + 1], config)


def test_diverse_beam_search_gives_more_diverse_outputs() -> None:
    model = varied_model(("recurrent", "transformer"))
    source, mask, _ = random_batch([7, 3, 5, 9], [1] * 4)

    def overlap(config: SearchConfig) -> int:
        same = 0
        for each in token_lists(search(model, source, mask, config)):
            for at in range(len(each)):
                same += sum(len(set(each[at]) & set(other)) for other in each[:at])
        return same

    assert overlap(SearchConfig(4, nbest=4, max_length=7, beam_groups=4, diversity_penalty=3.0)) < overlap(
        SearchConfig(4, nbest=4, max_length=7)
    )


@every_decoder
def test_required_phrases_are_placed_where_they_score_best(decoder: str) -> None:
    """The best of all outputs that contain the phrase, found by exhaustive search."""
    size, max_length = 2, 5
    all_outputs = [[*tokens, EOS] for n in range(max_length) for tokens in itertools.product([1, 4, 5], repeat=n)]
    for seed, phrase in enumerate([(4,), (5, 4), (4, 4)]):
        model = tiny_model(decoder, size, seed)
        source, mask, _ = random_batch([5], [1], seed)
        containing = [
            output
            for output in all_outputs
            if any(tuple(output[at : at + len(phrase)]) == phrase for at in range(len(output)))
        ]
        totals = log_probabilities(model, source, mask, containing)
        best = max(zip(containing, totals, strict=True), key=lambda pair: pair[1] / len(pair[0]))
        (found,) = search(
            model, source, mask, SearchConfig(60, max_length=max_length), [Constraints(required=(phrase,))]
        )
        assert found[0].tokens == best[0]
        assert found[0].log_probability == pytest.approx(best[1], abs=1e-3)


def test_overlapping_required_phrases_are_all_generated() -> None:
    model = confident_model(("recurrent", "bahdanau"))
    source, mask, _ = random_batch([6], [1])
    for required in (((5, 6), (6, 7)), ((5,), (5, 5)), ((8, 9, 10), (9,), (4,)), ((5, 6, 7), (5, 6, 8))):
        (found,) = search(model, source, mask, SearchConfig(8, max_length=20), [Constraints(required=required)])
        tokens = found[0].tokens
        for phrase in required:
            assert any(tuple(tokens[at : at + len(phrase)]) == phrase for at in range(len(tokens)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": 0.0}, "temperature: 0.0 is not possible"),
        ({"top_k": -1}, "top_k: -1"),
        ({"top_p": 0.0}, "top_p: 0.0"),
        ({"top_p": 1.1}, "top_p: 1.1"),
    ],
)
def test_invalid_sampling_options_are_rejected(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**given)


def test_invalid_search_settings_are_rejected() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"beam_groups": 2}, "beam_groups: 2 groups do not divide a beam of 5"),
        ({"beam": 3, "nbest": 4}, "beam: 3 is too small"),
    )
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            SearchConfig(**given)
    source, mask, _ = random_batch([2], [1])
    with pytest.raises(ValueError, match="forbidden: words can be forbidden only where tokens have a text"):
        search(confident_model(("recurrent", "bahdanau")), source, mask, SearchConfig(forbidden=("a",)))
