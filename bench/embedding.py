"""Tokens per batch when texts are embedded: processor time of each size, interleaved, next to the one that is used.

    python -m bench.embedding RUN TEXTS

RUN is an encoder, such as MiniLM from `regard import`; TEXTS is a text file, of which 256 lines are embedded, and
as many again of four lines each.
"""

import statistics
import sys
import time
from pathlib import Path

import torch

import regard
from regard.inference.pipelines import text_embedding

SIZES = (256, 512, 1024, 2048, 4096, 8192)
ROUNDS = 5
LINES = 256


def main(run: Path, texts: Path) -> None:
    torch.set_num_threads(1)
    predictor = regard.load(run, device="cpu", threads=1)
    lines = texts.read_text("utf-8").splitlines()[: 5 * LINES]
    some = lines[:LINES] + [" ".join(lines[start : start + 4]) for start in range(LINES, len(lines), 4)]
    chosen = text_embedding.BATCH_TOKENS
    seconds: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(1 + ROUNDS):  # the first round warms up
        for size in SIZES:
            text_embedding.BATCH_TOKENS = size
            start = time.process_time()
            predictor.embed(some)
            seconds[size].append(time.process_time() - start)
    median = {size: statistics.median(times[1:]) for size, times in seconds.items()}
    print("tokens per batch, seconds for", len(some), "texts, and next to", chosen)
    for size in SIZES:
        print(f"{size:6,}  {median[size]:7.3f}  {median[size] / median[chosen]:5.2f}x")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
