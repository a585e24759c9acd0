"""Training beside its peers: target tokens per second on one thread, the same shape and the same batches.

    python -m bench.training [tiny] [base] [recurrent]

Peers run as installed and, where it matters, with the allocator settings that we give ourselves. Each runs in a
process of its own, and they are timed in turn. The recurrent peer is JoeyNMT's model with Bahdanau attention
(pip install --no-deps joeynmt==2.3.0, and what it imports: importlib_metadata, packaging, pyyaml, tensorboard).
"""

import sys

from bench.measure import Claim, report
from bench.trainees import BATCHES, batches
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
    "recurrent": [("ours", "tuned"), ("ours-float32", "tuned"), ("joeynmt", "default"), ("joeynmt", "tuned")],
}
ROUNDS = {"tiny": 9, "base": 5, "recurrent": 7}


def run(size: str) -> list[Claim]:
    workers = {
        f"{name}, {malloc} malloc": Worker("bench.trainees", name, size, malloc) for name, malloc in CANDIDATES[size]
    }
    taken = interleaved(workers, ROUNDS[size])
    tokens = sum(batch.tokens for batch in batches()[: 1 if size == "base" else BATCHES])
    print(f"\n{size}: target tokens per second, one thread")
    for name, seconds in sorted(taken.items(), key=lambda pair: pair[1]):
        print(f"  {name:32} {tokens / seconds:8,.0f}")
    mine = taken["ours, tuned malloc"]
    peers = {name: seconds for name, seconds in taken.items() if not name.startswith("ours")}
    claims = []
    for malloc, promised in {"tiny": {"default": 2.0, "tuned": 1.4}, "base": {"default": 1.3}}.get(
        size, {"default": 3.0}
    ).items():
        best = min((name for name in peers if f"{malloc} malloc" in name), key=lambda name: peers[name])
        claims.append(Claim(f"training, {size} shape", best, peers[best] / mine, promised))
    exact = taken["ours-float32, tuned malloc"]
    best = min(peers, key=lambda name: peers[name])
    print(f"  in float32 throughout: {peers[best] / exact:.2f}x the best peer ({best})")
    return claims


def main() -> None:
    report([claim for size in sys.argv[1:] or list(CANDIDATES) for claim in run(size)])


if __name__ == "__main__":
    main()
