"""The perplexity of a 5-gram model with modified Kneser–Ney smoothing (Chen and Goodman 1999), to compare with.

python recipes/ngrams.py RUN TRAIN TEST [--order 5]

RUN is a run of `regard train --task causal_lm`: both texts are tokenized by its tokenizer, so that tokens are
the same on both sides.
Lines are documents, as in `regard evaluate`; each has an end, which is to be foreseen, too.
"""

import argparse
import math
from collections import Counter, defaultdict
from pathlib import Path

from regard.data.input_validation import normalize_whitespace
from regard.data.tokenizers import load_tokenizer
from regard.special_tokens import BEGIN, END

Gram = tuple[int, ...]


class KneserNey:
    """Interpolated, with three discounts at each order; the lowest is interpolated with the uniform distribution."""

    def __init__(self, texts: list[list[int]], order: int, vocabulary: int) -> None:
        self.order, self.vocabulary = order, vocabulary
        counts = [Counter[Gram]() for _ in range(order + 1)]
        for text in texts:
            padded = [BEGIN] * (order - 1) + text + [END]
            for end in range(order - 1, len(padded)):
                counts[order][tuple(padded[end - order + 1 : end + 1])] += 1
        # Below the highest order, a gram's count is the number of different tokens that precede it; a gram at the start
        # of a text is preceded only by BEGIN, and keeps its own count.
        for n in range(order - 1, 0, -1):
            for gram, count in counts[n + 1].items():
                counts[n][gram[1:]] += count if gram[1] == BEGIN else 1
        self.counts = counts
        self.totals = [defaultdict[Gram, int](int) for _ in range(order + 1)]
        self.kinds = [defaultdict[Gram, list[int]](lambda: [0, 0, 0]) for _ in range(order + 1)]
        self.discounts = [(0.0, 0.0, 0.0)] * (order + 1)
        for n in range(1, order + 1):
            counts_of_counts = Counter(count for count in counts[n].values() if count <= 4)
            one, two, three, four = (max(1, counts_of_counts[k]) for k in (1, 2, 3, 4))
            y = one / (one + 2 * two)
            discounts = (1 - 2 * y * two / one, 2 - 3 * y * three / two, 3 - 4 * y * four / three)
            # With few rare grams, as for single subwords, the estimates are invalid; use defaults, as KenLM does.
            valid = all(0 < discount <= k for k, discount in enumerate(discounts, 1))
            self.discounts[n] = discounts if valid else (0.5, 1.0, 1.5)
            for gram, count in counts[n].items():
                self.totals[n][gram[:-1]] += count
                self.kinds[n][gram[:-1]][min(count, 3) - 1] += 1

    def probability(self, gram: Gram) -> float:
        """The probability of a gram's last token given the others."""
        n = len(gram)
        if not n:
            return 1 / self.vocabulary
        lower = self.probability(gram[1:])
        context = gram[:-1]
        total = self.totals[n].get(context, 0)
        if not total:
            return lower
        count = self.counts[n].get(gram, 0)
        discounted = max(0.0, count - self.discounts[n][min(count, 3) - 1]) if count else 0.0
        backoff_mass = sum(d * kind for d, kind in zip(self.discounts[n], self.kinds[n][context], strict=True))
        return (discounted + backoff_mass * lower) / total

    def perplexity(self, texts: list[list[int]]) -> tuple[float, int]:
        """exp of the mean loss of a token, ends counted, and how many there are."""
        total, tokens = 0.0, 0
        for text in texts:
            padded = [BEGIN] * (self.order - 1) + text + [END]
            for end in range(self.order - 1, len(padded)):
                total -= math.log(self.probability(tuple(padded[end - self.order + 1 : end + 1])))
                tokens += 1
        return math.exp(total / tokens), tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--order", type=int, default=5)
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.run / "target.subwords")
    train, test = (
        tokenizer.encode([normalize_whitespace(line) for line in path.read_text("utf-8").splitlines() if line.strip()])
        for path in (arguments.train, arguments.test)
    )
    for order in range(1, arguments.order + 1):
        perplexity, tokens = KneserNey(train, order, len(tokenizer)).perplexity(test)
        print(f"{order}-grams: perplexity {perplexity:.2f} of a token, over {tokens:,}")


if __name__ == "__main__":
    main()
