"""Files larger than memory: five million generated pairs, prepared and read in batches, under 2 GB at the peak.

    python -m bench.large_corpus [PAIRS]      about ten minutes for five million

The pairs are numbers in words and figures, made by code. What is counted is this process's resident memory at its
highest, the pages of memory-mapped files included.
"""

import random
import resource
import sys
import tempfile
from pathlib import Path

from bench.measure import Claim, report
from regard.data.batch import load_batch
from regard.data.batch_plan import plan_epoch
from regard.data.corpus import prepare
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.settings import DataSettings
from regard.models.settings import TextSource

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def write_pairs(path: Path, count: int) -> None:
    generator = random.Random(1)
    with path.open("w") as file:
        for _ in range(count):
            digits = str(generator.randrange(10 ** generator.randrange(3, 24)))
            file.write(f"{' '.join(WORDS[int(digit)] for digit in digits)}\t{digits}\n")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "pairs.tsv"
        write_pairs(data, count)
        print(f"{count:,} pairs, {data.stat().st_size / 2**20:,.0f} MiB of text")
        settings = DataSettings.parse({"pairs": [str(data)]})
        corpus = prepare(settings, Path(folder) / "corpus", kind=TextPairs(), source=TextSource())
        lengths = corpus.train.source_lengths, corpus.train.target_lengths
        plan = plan_epoch(*lengths, tokens=4096, seed=1, epoch=0)
        for numbers in plan[:2000]:
            load_batch(corpus, corpus.train, numbers)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{len(corpus.train):,} training examples, {len(corpus.valid):,} held out, {len(plan):,} batches")
        print(f"peak memory {peak / 1e9:.2f} GB")
        report([Claim(f"peak memory of {count:,} pairs", "2 GB", peak / 2e9, 1.0, at_most=True)])


if __name__ == "__main__":
    main()
