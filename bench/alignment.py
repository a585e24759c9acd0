"""How well attention aligns words: agreement of trained runs with eflomal, an aligner, run beside them.

    python -m bench.alignment TRAIN.SOURCE TRAIN.TARGET TEST.SOURCE TEST.TARGET RUN [RUN ...]

eflomal (pip install eflomal) aligns the training pairs and the test pairs together, in both directions. What both say
is sure, what either says is possible; each run aligns the test pairs in its one direction, by the layer and head that
its training found, and by those one takes if nothing is known.
"""

import sys
import tempfile
from pathlib import Path

from regard.alignment.alignment_head import AlignmentHead
from regard.evaluation.alignment_error import GoldAlignment, Links, read_links, score_alignment
from regard.inference.pair_alignment import align_pairs
from regard.loading import load


def align_with_eflomal(train: list[Path], test: list[Path], folder: Path) -> tuple[list[Links], list[Links]]:
    """Links of the test pairs, (source, target), in both directions."""
    from eflomal import Aligner

    paths = []
    for name, files in (("source", (test[0], train[0])), ("target", (test[1], train[1]))):
        path = folder / name
        path.write_text("".join(f"{line}\n" for each in files for line in _lines(each)), "utf-8")
        paths.append(path)
    with paths[0].open() as source, paths[1].open() as target:
        Aligner().align(
            source,
            target,
            links_filename_fwd=str(folder / "forward"),
            links_filename_rev=str(folder / "backward"),
            quiet=True,
        )
    count = len(_lines(test[0]))
    forward, backward = (
        [each.sure for each in read_links(folder / name)[0][:count]] for name in ("forward", "backward")
    )
    return forward, backward


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def main() -> None:
    if len(sys.argv) < 6:
        raise SystemExit(__doc__)
    train, test, runs = [Path(each) for each in sys.argv[1:3]], [Path(each) for each in sys.argv[3:5]], sys.argv[5:]
    with tempfile.TemporaryDirectory() as folder:
        forward, backward = align_with_eflomal(train, test, Path(folder))
    gold = [
        GoldAlignment(forward_links & backward_links, forward_links | backward_links)
        for forward_links, backward_links in zip(forward, backward, strict=True)
    ]
    pairs = list(zip(_lines(test[0]), _lines(test[1]), strict=True))
    print(f"{len(pairs):,} pairs; agreement with eflomal")
    print(f"{'run':34} {'AER':>6} {'precision':>10} {'recall':>7}   seen in")
    for run in runs:
        translator = load(run, engine="torch", device="cpu")
        alignment_head, translator.run.alignment_head = translator.run.alignment_head, None
        default_links = [set(each or ()) for each in align_pairs(translator.pipeline, pairs)]
        if alignment_head is not None:
            translator.run.alignment_head = alignment_head
            _show(
                run,
                [set(each or ()) for each in align_pairs(translator.pipeline, pairs)],
                gold,
                _describe_head(alignment_head),
            )
        _show(run, default_links, gold, "the last layer but one, its heads' mean")


def _describe_head(alignment_head: AlignmentHead) -> str:
    head = "all heads" if alignment_head.head is None else f"head {alignment_head.head + 1}"
    return f"layer {alignment_head.layer + 1}, {head}{', the step after' if alignment_head.shifted else ''}"


def _show(name: str, links: list[Links], gold: list[GoldAlignment], source_of_head: str) -> None:
    result = score_alignment(links, gold)
    print(
        f"{name[-34:]:34} {result.aer:6.1f} {result.precision:10.1f} {result.recall:7.1f}   {source_of_head}",
        flush=True,
    )


if __name__ == "__main__":
    main()
