"""Word alignment of files of pairs by the attention of trained runs, in one direction or symmetrized."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.alignment.aligner import SYMMETRIZATIONS, symmetrize
from regard.data.example import Layout
from regard.data.readers import read_aligned, read_pairs
from regard.errors import RegardError
from regard.evaluation.report import Progress
from regard.inference.pair_alignment import align_pairs as align_by_attention
from regard.loading import load
from regard.runs.folder import open_run

Link = tuple[int, int]  # source word, target word, from 0


@dataclass(frozen=True)
class PairsToAlign:
    """Pairs of texts, and notes on their files for the user."""

    pairs: list[tuple[str, str]]
    notes: list[str]


def read_pairs_to_align(
    files: Sequence[Path], source: Path | None, target: Path | None, layout: Layout
) -> PairsToAlign:
    """A pair for each line, also where it is not valid, so that lines of links and of pairs correspond."""
    if files and (source or target):
        raise RegardError("give either files with source and target, or --source and --target, not both.")
    notes: list[str] = []
    if files:
        examples = [example for path in files for example in read_pairs(path, layout)]
        for path in files:
            lines = [example.line for example in examples if example.file == str(path)]
            if path.suffix in (".tsv", ".tab") and lines and lines[-1] > len(lines):
                notes.append(f"{path}: {lines[-1]:,} lines, {len(lines):,} pairs; lines without a pair have none here.")
    elif source is not None and target is not None:
        examples = list(read_aligned(source, target))
    else:
        raise RegardError("name pairs to align: a file with source and target, or two aligned text files.")
    return PairsToAlign([(example.source, example.target) for example in examples], notes)


def align_pairs(
    run: Path, pairs: Sequence[tuple[str, str]], device: str, progress: Progress
) -> list[list[Link] | None]:
    """The links of each pair by a run's attention; None for one longer than the model reads."""
    predictor = load(run, engine="torch", device=device)
    if getattr(predictor.description.model.decoder, "attend", "") == "never":
        raise RegardError(f"{run}: this model has no attention, so it cannot align words.")
    with progress(f"aligning with {run}", len(pairs)) as advance:
        return align_by_attention(predictor.pipeline, pairs, advance)


def align_both_directions(
    run: Path,
    backward: Path,
    pairs: Sequence[tuple[str, str]],
    device: str,
    progress: Progress,
    *,
    symmetrization: str | None = None,
) -> list[list[Link] | None]:
    """The links of a run and of one from the target's language to the source's, combined."""
    forward_links = align_pairs(run, pairs, device, progress)
    backward_links = align_pairs(backward, [(target, source) for source, target in pairs], device, progress)
    combined: list[list[Link] | None] = []
    for one, other in zip(forward_links, backward_links, strict=True):
        if one is None or other is None:
            combined.append(one)
        else:
            reversed_links = [(source, target) for target, source in other]
            combined.append(sorted(symmetrize(one, reversed_links, symmetrization or SYMMETRIZATIONS[0])))
    return combined


def check_symmetrization(symmetrization: str | None, run: Path, backward: Path | None) -> None:
    """Raises RegardError if there is no such symmetrization, or no run for the other direction."""
    if symmetrization is not None and symmetrization not in SYMMETRIZATIONS:
        raise RegardError(f"--symmetrize: there is no {symmetrization!r}; there are {', '.join(SYMMETRIZATIONS)}.")
    if symmetrization is not None and backward is None:
        raise RegardError("--symmetrize: it needs a run of the other direction, given with --backward.")
    if backward is None:
        return
    one, other = (open_run(each).description for each in (run, backward))
    languages = [one.source_language, one.target_language, other.target_language, other.source_language]
    if run.resolve() == backward.resolve() or (all(languages) and languages[:2] != languages[2:]):
        raise RegardError(f"--backward: {backward} is no run from the target's language to the source's.")
