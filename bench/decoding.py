"""Translating beside CTranslate2: from text to text, one thread, the same weights, each at its best batch size.

    python -m bench.decoding RUN SOURCE REFERENCE [--deep-shallow RUN]

RUN is a trained Transformer, SOURCE and REFERENCE are text files, such as Multi30k's test set and the run of
recipes/multi30k/transformer-tiny.toml. CTranslate2 is called directly, with sentencepiece before and after it as for
us. BLEU is printed beside the speed: a fast engine with other outputs is no faster.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import sacrebleu
import sentencepiece

import regard
from bench.measure import Claim, report
from regard.runs.ctranslate2_conversion import convert_to_ctranslate2
from regard.runs.folder import open_run

ROUNDS = 5
SIZES = (8, 16, 32, 64, 128)
Texts = list[str]


def ctranslate2_translator(run: Path, kind: str, size: int, beam: int) -> Callable[[Texts], Texts]:
    """CTranslate2 as its documentation calls it."""
    opened = open_run(run)
    translator = ctranslate2.Translator(
        str(convert_to_ctranslate2(opened, kind)), compute_type=kind, inter_threads=1, intra_threads=1
    )
    source = sentencepiece.SentencePieceProcessor(model_proto=opened.source_processor.model)
    target = sentencepiece.SentencePieceProcessor(model_proto=opened.target_vocabulary.model)

    def translate(texts: Texts) -> Texts:
        tokens = [[*each, "</s>"] for each in source.encode(texts, out_type=str)]
        results = translator.translate_batch(tokens, beam_size=beam, max_batch_size=size)
        return [target.decode(each.hypotheses[0]) for each in results]

    return translate


def regard_translator(run: Path, beam: int, **options: object) -> Callable[[Texts], Texts]:
    translator = regard.load(run, threads=1, device="cpu", **options)  # type: ignore[arg-type]
    return lambda texts: [result.text for result in translator.translate(texts, beam=beam)]


def measure(
    candidates: dict[str, Callable[[Texts], Texts]], texts: Texts, references: Texts
) -> dict[str, tuple[float, float]]:
    """Sentences a second and BLEU of each, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    outputs = {name: run(texts) for name, run in candidates.items()}
    for _ in range(ROUNDS):
        for name, run in candidates.items():
            start = time.perf_counter()
            run(texts)
            times[name].append(time.perf_counter() - start)
    return {
        name: (
            len(texts) / statistics.median(times[name]),
            sacrebleu.corpus_bleu(outputs[name], [references], tokenize="none", force=True).score,
        )
        for name in candidates
    }


def best_size(run: Path, kind: str, beam: int, texts: Texts) -> int:
    """The batch size at which CTranslate2 is fastest here."""
    seconds = {}
    for size in SIZES:
        translate = ctranslate2_translator(run, kind, size, beam)
        translate(texts[:200])
        start = time.perf_counter()
        translate(texts)
        seconds[size] = time.perf_counter() - start
    return min(seconds, key=lambda size: seconds[size])


def compare(run: Path, deep_shallow: Path | None, texts: Texts, references: Texts) -> list[Claim]:
    claims: list[Claim] = []
    for beam in (5, 1):
        sizes = {kind: best_size(run, kind, beam, texts) for kind in ("int8", "float32")}
        candidates = {
            **{
                f"CTranslate2 {kind}, batches of {size}": ctranslate2_translator(run, kind, size, beam)
                for kind, size in sizes.items()
            },
            "ours int8": regard_translator(run, beam),
            "ours float32": regard_translator(run, beam, precision="float32"),
            "ours int8, shortlist": regard_translator(run, beam, shortlist=True),
            "our CTranslate2 engine, int8": regard_translator(run, beam, engine="ctranslate2"),
        }
        if deep_shallow is not None:
            candidates["ours int8, deep-shallow"] = regard_translator(deep_shallow, beam)
            candidates["ours int8, shortlist, deep-shallow"] = regard_translator(deep_shallow, beam, shortlist=True)
        results = measure(candidates, texts, references)
        print(f"\nbeam {beam}: sentences per second, BLEU")
        for name, (speed, bleu) in results.items():
            print(f"  {name:44} {speed:8.1f} {bleu:7.2f}")
        peer = next(name for name in results if name.startswith("CTranslate2 int8"))

        def ratio(name: str) -> float:
            return results[name][0] / results[peer][0]

        claims.append(Claim(f"text to text, beam {beam}", peer, ratio("ours int8"), 1.0))
        claims.append(Claim(f"text to text with a shortlist, beam {beam}", peer, ratio("ours int8, shortlist"), 1.8))
        if beam == 5:
            bleu_loss = results[peer][1] - results["ours int8, shortlist"][1]
            claims.append(Claim("BLEU lost by the shortlist", "CTranslate2 int8", bleu_loss, 0.1, at_most=True))
            if deep_shallow is not None:
                name = "ours int8, shortlist, deep-shallow"
                claims.append(Claim("deep-shallow with a shortlist, beam 5", peer, ratio(name), 3.0))
                bleu_loss = results[peer][1] - results[name][1]
                claims.append(Claim("BLEU lost by deep-shallow", "CTranslate2 int8", bleu_loss, 0.5, at_most=True))
    return claims


def startup_claims(run: Path, text: str) -> list[Claim]:
    """Seconds from process start to the first translation."""
    claims = []
    for engine in ("native", "ctranslate2"):
        command = [sys.executable, "-m", "regard", "translate", str(run), text, "--engine", engine]
        seconds = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
        what = f"seconds to the first translation, {engine}"
        claims.append(Claim(what, "(seconds, not a ratio)", statistics.median(seconds), 1.0, at_most=True))
    return claims


def main() -> None:
    arguments = sys.argv[1:]
    deep_shallow = None
    if "--deep-shallow" in arguments:
        index = arguments.index("--deep-shallow")
        deep_shallow = Path(arguments[index + 1])
        del arguments[index : index + 2]
    if len(arguments) != 3:
        raise SystemExit(__doc__)
    run, source, reference = map(Path, arguments)
    texts, references = (path.read_text("utf-8").splitlines() for path in (source, reference))
    report([*compare(run, deep_shallow, texts, references), *startup_claims(run, texts[0])])


if __name__ == "__main__":
    main()
