"""Training beside its peers: target tokens per second on one thread, the same shape and the same batches.

    python -m bench.training [tiny] [base] [recurrent]

Peers run as installed and, where it matters, with the allocator settings that we give ourselves. Each runs in a
process of its own, and they are timed in turn. The recurrent peer is JoeyNMT's model with Bahdanau attention, fed with
the same batches as ours and, beside that, with batches as JoeyNMT makes them
(pip install --no-deps joeynmt==2.3.0, and what it imports: importlib_metadata, packaging, pyyaml, tensorboard).
"""

import sys

from bench.measure import Claim, report
from bench.training_peers import JOEYNMT_BATCHES, candidate_batches
from bench.workers import Worker, interleaved

CANDIDATES = {
    "tiny": [
        ("ours", "tuned"),
        ("ours-float32", "tuned"),
        ("hugging-face", "default"),
        ("hugging-face", "tuned"),
        ("nn.Transformer", "default"),
        ("nn.Transformer", "tuned"),
    ],
    "base": [("ours", "tuned"), ("ours-float32", "tuned"), ("hugging-face", "default"), ("nn.Transformer", "default")],
    "recurrent": [
        ("ours", "tuned"),
        ("ours-float32", "tuned"),
        ("joeynmt", "default"),
        ("joeynmt", "tuned"),
        (JOEYNMT_BATCHES, "default"),
    ],
}
ROUNDS = {"tiny": 9, "base": 5, "recurrent": 7}
# How many times as fast as the fastest of the peers that run like this.
PROMISED: dict[str, dict[tuple[str, ...], float]] = {
    "tiny": {
        ("hugging-face, default", "nn.Transformer, default"): 2.0,
        ("hugging-face, tuned", "nn.Transformer, tuned"): 1.4,
    },
    "base": {("hugging-face, default", "nn.Transformer, default"): 1.3},
    "recurrent": {("joeynmt, default",): 3.0, (f"{JOEYNMT_BATCHES}, default",): 3.0},
}


def run(size: str) -> list[Claim]:
    workers = {
        f"{name}, {malloc}": Worker("bench.training_peers", name, size, malloc) for name, malloc in CANDIDATES[size]
    }
    seconds_taken = interleaved(workers, ROUNDS[size])
    speed = {
        f"{name}, {malloc}": sum(batch.tokens for batch in candidate_batches(name, size))
        / seconds_taken[f"{name}, {malloc}"]
        for name, malloc in CANDIDATES[size]
    }
    print(f"\n{size}: target tokens per second, one thread")
    for name, tokens in sorted(speed.items(), key=lambda pair: -pair[1]):
        print(f"  {name + ' malloc':44} {tokens:8,.0f}")
    best_peer = max((name for name in speed if not name.startswith("ours")), key=lambda name: speed[name])
    float32_ratio = speed["ours-float32, tuned"] / speed[best_peer]
    print(f"  ours in float32 throughout: {float32_ratio:.2f}x the best peer ({best_peer} malloc)")
    claims = []
    for peers, promised in PROMISED[size].items():
        fastest = max(peers, key=lambda name: speed[name])
        ratio = speed["ours, tuned"] / speed[fastest]
        claims.append(Claim(f"training, {size} shape", f"{fastest} malloc", ratio, promised))
    return claims


def main() -> None:
    report([claim for size in sys.argv[1:] or list(CANDIDATES) for claim in run(size)])


if __name__ == "__main__":
    main()
