"""Searches with wishes: every one of them, with every kind of decoder, in any company."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.inference.options import Options
from regard.inference.results import Constraints, Sampling, SearchConfig
from regard.inference.search_algorithm import search
from regard.special_tokens import BEGIN, END, PAD
from tests.inference.search.test_search import DECODER_KINDS, lively, log_probabilities, next_words, tiny, varied
from tests.models.variants import random_batch

every_kind = pytest.mark.parametrize("decoder", DECODER_KINDS)
HOWS = {
    "greedy": SearchConfig(1, max_length=9),
    "beam": SearchConfig(4, nbest=2, max_length=9),
    "diverse": SearchConfig(4, nbest=4, max_length=9, beam_groups=2),
    "sampling": SearchConfig(1, nbest=3, max_length=9, sampling=Sampling(temperature=1.2)),
}
every_search = pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)


def said(found: list) -> list[list[list[int]]]:
    return [[hypothesis.tokens for hypothesis in each] for each in found]


@every_kind
@every_search
def test_company_changes_nothing_whatever_is_asked_for(decoder: str, how: SearchConfig) -> None:
    model = varied(("recurrent", decoder))
    lengths = [1 + (7 * row) % 11 for row in range(12)]
    source, mask, _ = random_batch(lengths, [1] * 12)
    wishes = [
        Constraints(
            prefix=(5, 6)[: row % 3],
            counts={7: row % 2, 8: 1} if row % 4 == 1 else {},
            required=((9, 5),) if row % 5 == 2 and how.sampling is None else (),
        )
        for row in range(12)
    ]
    how = replace(how, no_repeat_ngram=2)

    def run(rows: list[int], width: int) -> list[list[list[int]]]:
        return said(search(model, source[rows, :width], mask[rows, :width], how, [wishes[row] for row in rows]))

    together = run(list(range(12)), 11)
    backwards = run(list(range(12))[::-1], 11)[::-1]
    assert backwards == together
    for row in range(12):
        assert run([row], lengths[row]) == [together[row]]
        wish = wishes[row]
        for tokens in together[row]:
            assert tuple(tokens[: len(wish.prefix)]) == wish.prefix
            counts = Counter(tokens)
            assert all(counts[token] == count for token, count in wish.counts.items())
            for phrase in wish.required:
                assert any(tuple(tokens[at : at + 2]) == phrase for at in range(len(tokens)))


@every_kind
@every_search
def test_nothing_comes_twice(decoder: str, how: SearchConfig) -> None:
    model = lively(("recurrent", decoder))
    with torch.no_grad():
        model.output.bias[END] = -1e4  # goes on to the limit
    source, mask, _ = random_batch([7, 3], [1, 1])
    repeats = 0
    for n in (1, 2, 3):
        for each in search(model, source, mask, replace(how, no_repeat_ngram=n, max_length=8)):
            for hypothesis in each:
                tokens = hypothesis.tokens[:-1]
                runs = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
                assert len(set(runs)) == len(runs)
        for each in search(model, source, mask, replace(how, max_length=8)):
            for hypothesis in each:
                tokens = hypothesis.tokens[:-1]
                runs = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
                repeats += len(set(runs)) < len(runs)
    assert repeats, "without the rule something does"


@every_kind
def test_samples_are_drawn_by_their_probabilities(decoder: str) -> None:
    """First words over many seeds, against the model's own probabilities."""
    model = lively(("recurrent", decoder))
    source, mask, _ = random_batch([4], [1])
    logs = next_words(model, source, mask, [[]])[0]
    logs[[PAD, BEGIN]] = -torch.inf
    for how, temperature, allowed in (
        (Sampling(), 1.0, 99),
        (Sampling(temperature=0.5), 0.5, 99),
        (Sampling(top_k=3), 1.0, 3),
    ):
        ranked = logs.argsort(descending=True)[:allowed]
        expected = torch.zeros_like(logs)
        expected[ranked] = (logs[ranked] / temperature).softmax(-1)
        draws: Counter[int] = Counter()
        for seed in range(10):
            sampling = Sampling(how.temperature, how.top_k, how.top_p, seed)
            (found,) = search(model, source, mask, SearchConfig(1, nbest=100, max_length=2, sampling=sampling))
            draws.update(hypothesis.tokens[0] for hypothesis in found)
        for token, chance in enumerate(expected.tolist()):
            assert abs(draws[token] / 1000 - chance) < 0.06  # almost four standard deviations
            assert chance > 0 or not draws[token]


def test_top_p_keeps_the_fewest_that_have_it() -> None:
    model = lively(("recurrent", "bahdanau"))
    source, mask, _ = random_batch([4], [1])
    chances = next_words(model, source, mask, [[]])[0].exp()
    chances[[PAD, BEGIN]] = 0
    chances /= chances.sum()
    ranked = chances.sort(descending=True)
    for top_p in (0.05, 0.5, 0.9):
        count = int((ranked.values.cumsum(0) < top_p).sum()) + 1
        sampling = Sampling(top_p=top_p)
        (found,) = search(model, source, mask, SearchConfig(1, nbest=300, max_length=2, sampling=sampling))
        drawn = {hypothesis.tokens[0] for hypothesis in found}
        assert drawn <= set(ranked.indices[:count].tolist())
        assert len(drawn) > 1 or count == 1


def test_a_seed_gives_the_same_draws_and_another_gives_others() -> None:
    model = varied(("recurrent", "transformer"))
    source, mask, _ = random_batch([4, 6], [1, 1])

    def run(seed: int, nbest: int = 4) -> list[list[list[int]]]:
        return said(
            search(model, source, mask, SearchConfig(1, nbest=nbest, max_length=9, sampling=Sampling(seed=seed)))
        )

    assert run(1) == run(1) != run(2)
    assert [each[:2] for each in run(1)] == run(1, 2), "more draws do not change the first ones"
    (draws, _) = run(1, 8)
    assert len({str(tokens) for tokens in draws}) > 3


def test_a_sample_has_the_models_own_probability() -> None:
    model = lively(("recurrent", "luong input feeding"))
    source, mask, _ = random_batch([4], [1])
    how = SearchConfig(1, nbest=5, max_length=6, sampling=Sampling(temperature=2.0, top_k=5))
    (found,) = search(model, source, mask, how)
    expected = log_probabilities(model, source, mask, [h.tokens for h in found])
    assert [h.log_probability for h in found] == pytest.approx(expected, abs=1e-3)


def plain_diverse(model, source: Tensor, mask: Tensor, how: SearchConfig) -> list[list[int]]:
    """Groups of beam 1 with lists: what each group says at a step costs the groups after it."""
    going: list[tuple[float, list[int]]] = [(0.0, [])] * how.beam_groups
    for step in range(how.max_length):
        cost: Counter[int] = Counter()
        for group, (total, words) in enumerate(going):
            if words[-1:] == [END]:
                continue
            logs = next_words(model, source, mask, [words])[0]
            logs[[PAD, BEGIN]] = -torch.inf
            if step == how.max_length - 1:
                logs[[token for token in range(len(logs)) if token != END]] = -torch.inf
            paid = torch.tensor([how.diversity_penalty * cost[token] for token in range(len(logs))])
            token = int((logs - paid).argmax())
            if token != END:
                cost[token] += 1
            going[group] = (total + float(logs[token]), [*words, token])
    ranked = sorted(going, key=lambda one: -one[0] / len(one[1]))
    return [words for place, (_, words) in enumerate(ranked) if words not in [other for _, other in ranked[:place]]]


@every_kind
def test_diverse_beams_are_the_plain_ones(decoder: str) -> None:
    model = varied(("recurrent", decoder))
    source, mask, _ = random_batch([7, 3, 1], [1, 1, 1])
    how = SearchConfig(3, nbest=3, max_length=7, beam_groups=3, diversity_penalty=1.5, patient=False)
    for row, tokens in enumerate(said(search(model, source, mask, how))):
        assert tokens == plain_diverse(model, source[row : row + 1], mask[row : row + 1], how)


def test_diverse_beams_differ_more() -> None:
    model = varied(("recurrent", "transformer"))
    source, mask, _ = random_batch([7, 3, 5, 9], [1] * 4)

    def overlap(how: SearchConfig) -> int:
        same = 0
        for each in said(search(model, source, mask, how)):
            for at in range(len(each)):
                same += sum(len(set(each[at]) & set(other)) for other in each[:at])
        return same

    assert overlap(SearchConfig(4, nbest=4, max_length=7, beam_groups=4, diversity_penalty=3.0)) < overlap(
        SearchConfig(4, nbest=4, max_length=7)
    )


@every_kind
def test_required_phrases_are_said_where_they_fit_best(decoder: str) -> None:
    """The best of all outputs that have the phrase, found by trying every output."""
    words, longest = 2, 5
    everything = [[*some, END] for n in range(longest) for some in itertools.product([1, 4, 5], repeat=n)]
    for seed, phrase in enumerate([(4,), (5, 4), (4, 4)]):
        model = tiny(decoder, words, seed)
        source, mask, _ = random_batch([5], [1], seed)
        having = [e for e in everything if any(tuple(e[at : at + len(phrase)]) == phrase for at in range(len(e)))]
        totals = log_probabilities(model, source, mask, having)
        best = max(zip(having, totals, strict=True), key=lambda pair: pair[1] / len(pair[0]))
        (found,) = search(model, source, mask, SearchConfig(60, max_length=longest), [Constraints(required=(phrase,))])
        assert found[0].tokens == best[0]
        assert found[0].log_probability == pytest.approx(best[1], abs=1e-3)


def test_several_phrases_that_overlap_are_all_said() -> None:
    model = lively(("recurrent", "bahdanau"))
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
def test_impossible_draws_are_refused(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**given)


def test_impossible_searches_are_refused() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"beam_groups": 2}, "beam_groups: 2 groups do not divide a beam of 5"),
        ({"beam": 3, "nbest": 4}, "beam: 3 is too small"),
    )
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            SearchConfig(**given)
    source, mask, _ = random_batch([2], [1])
    with pytest.raises(ValueError, match="forbidden: words can be forbidden only where tokens have a text"):
        search(lively(("recurrent", "bahdanau")), source, mask, SearchConfig(forbidden=("a",)))
