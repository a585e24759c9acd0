"""Beam search over a recurrent model with Bahdanau attention, beside JoeyNMT's at equal shape, one thread.

    python -m bench.recurrent_decoding

Ours in int8 with a shortlist, in int8 (what a run is translated with if nothing else is asked for), in float32, and in
PyTorch. Weights are random and the end is ruled out, so that all say exactly as many words. JoeyNMT is installed apart
(see bench/training.py; its search wants subword-nmt, too).
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from bench.measure import Claim, report
from bench.training_peers import SHAPES, VOCABULARY, joeynmt
from bench.workers import Worker, interleaved, serve
from regard.alignment.shortlist import FREQUENT_TOKENS, Shortlist
from regard.data.batch import pad_sequences
from regard.inference.engines.native import NativeEngine
from regard.inference.search.batch_search import search
from regard.inference.search_config import SearchConfig
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.folder import RunDescription
from regard.settings import merge_settings
from regard.special_tokens import EOS, PAD
from regard.tasks.presets import preset_settings

SENTENCES, LENGTH, OUTPUT_LENGTH = 64, 14, 16
CANDIDATES_PER_SOURCE = 340  # of a source's own, beside the most frequent
ROUNDS = 5
CANDIDATES = ("shortlist", "int8", "float32", "torch", "joeynmt")


def sources() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(LENGTH - 6, LENGTH + 6, (SENTENCES,), generator=generator).sort(descending=True).values
    return pad_sequences(
        [[*torch.randint(4, VOCABULARY, (int(n),), generator=generator).tolist(), EOS] for n in lengths.tolist()]
    )


def shortlist() -> Shortlist:
    """For each source about as many words as one learned from Multi30k has; which they are does not change the work."""
    generator = np.random.default_rng(1)
    table = generator.integers(4, VOCABULARY, (VOCABULARY, CANDIDATES_PER_SOURCE // LENGTH), np.int32)
    return Shortlist(table, np.arange(FREQUENT_TOKENS, dtype=np.int32))


def regard_search(beam: int, kind: str) -> Callable[[], object]:
    torch.manual_seed(1)
    settings = ModelSettings.parse(merge_settings(preset_settings("bahdanau")["model"], {"tie": "none"}))
    model = Seq2Seq(settings, source_vocabulary_size=VOCABULARY, target_vocabulary_size=VOCABULARY).eval()
    with torch.no_grad():
        model.output.bias[EOS] = -1e4
    source = sources()
    config = SearchConfig(beam, max_length=OUTPUT_LENGTH, max_length_ratio=100.0, patient=False)
    if kind == "torch":
        return lambda: search(model, source, source != PAD, config)
    with tempfile.TemporaryDirectory() as folder:
        save_file(model.state_dict(), Path(folder) / "model.safetensors")
        run: Any = SimpleNamespace(
            folder=Path(folder),
            description=RunDescription(max_tokens=OUTPUT_LENGTH, model=settings),
            source_processor=range(VOCABULARY),
            target_vocabulary=range(VOCABULARY),
        )
        shortlist_or_none = shortlist() if kind == "shortlist" else None
        engine = NativeEngine(
            run, precision="int8" if shortlist_or_none else kind, threads=1, shortlist=shortlist_or_none
        )
    token_lists = [[token for token in row if token != PAD] for row in source.tolist()]
    return lambda: engine.search(token_lists, config)


def joeynmt_search(beam: int) -> Callable[[], object]:
    from joeynmt.search import beam_search, greedy

    torch.manual_seed(1)
    modules, _ = joeynmt(SHAPES["recurrent"])
    modules_list: Any = list(modules.eval().children())
    source_table, target_table, encoder, decoder = modules_list
    source = sources()
    mask, lengths = (source != PAD)[:, None], (source != PAD).sum(1)

    class Model:
        """What JoeyNMT's search wants of a model."""

        pad_index, bos_index, eos_index, unk_index, sep_index = 0, 2, 3, 1, None
        specials: list[int] = []  # noqa: RUF012
        lang_tags: list[int] = []  # noqa: RUF012

        def __init__(self) -> None:
            self.decoder = decoder
            self.trg_vocab = SimpleNamespace(bos_index=2, eos_index=3, pad_index=0)

        def eval(self) -> None:
            pass

        def __call__(
            self, *, return_type: str, trg_input: Tensor, decoder_hidden: Any, att_vector: Any, **inputs: Any
        ) -> Any:
            assert return_type == "decode"
            return decoder(
                trg_embed=target_table(trg_input),
                encoder_output=inputs["encoder_output"],
                encoder_hidden=inputs["encoder_hidden"],
                src_mask=inputs["src_mask"],
                unroll_steps=inputs["unroll_steps"],
                hidden=decoder_hidden,
                prev_att_vector=att_vector,
            )

    model: Any = Model()

    @torch.inference_mode()
    def run() -> object:
        output, hidden = encoder(source_table(source), lengths, mask)
        if beam == 1:
            return greedy(mask, OUTPUT_LENGTH, model, output, hidden, min_output_length=OUTPUT_LENGTH)
        return beam_search(model, beam, output, hidden, mask, OUTPUT_LENGTH, 1.0, min_output_length=OUTPUT_LENGTH)

    return run


def main() -> None:
    if len(sys.argv) == 3:  # a worker
        name, beam = sys.argv[1], int(sys.argv[2])
        serve(joeynmt_search(beam) if name == "joeynmt" else regard_search(beam, name))
        return
    claims = []
    for beam in (5, 1):
        seconds_taken = interleaved(
            {name: Worker("bench.recurrent_decoding", name, str(beam)) for name in CANDIDATES}, ROUNDS
        )
        print(f"\nbeam {beam}: sentences per second, {OUTPUT_LENGTH} words each")
        for name, seconds in seconds_taken.items():
            print(f"  {name:12} {SENTENCES / seconds:8.1f}  {seconds_taken['joeynmt'] / seconds:6.2f}x JoeyNMT")
        what = f"recurrent model with attention, beam {beam}"
        claims.append(
            Claim(f"{what}, a shortlist", "JoeyNMT", seconds_taken["joeynmt"] / seconds_taken["shortlist"], 10.0)
        )
    report(claims)


if __name__ == "__main__":
    main()
