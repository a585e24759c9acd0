"""Beam search over a recurrent model with Bahdanau attention, beside JoeyNMT's at equal shape, one thread.

    python -m bench.searching

Weights are random and the end is ruled out, so that both say exactly as many words for every source. JoeyNMT is
installed apart (see bench/training.py; its search wants subword-nmt, too).
"""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from bench.measure import Claim, report
from bench.trainees import SHAPES, VOCABULARY, joeynmt
from bench.workers import Worker, interleaved, serve
from regard.data.batches import padded
from regard.decoding.lowering import lowered
from regard.decoding.results import Search
from regard.decoding.searches import search
from regard.models.presets import PRESETS
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.settings import merged
from regard.tokens import END, PAD

SENTENCES, LENGTH, SAID = 64, 14, 16
ROUNDS = 5
CANDIDATES = ("ours", "ours-int8", "joeynmt")


def sources() -> Tensor:
    dice = torch.Generator().manual_seed(1)
    lengths = torch.randint(LENGTH - 6, LENGTH + 6, (SENTENCES,), generator=dice).sort(descending=True).values
    return padded([[*torch.randint(4, VOCABULARY, (int(n),), generator=dice).tolist(), END] for n in lengths.tolist()])


def ours(beam: int, *, low: bool) -> Callable[[], object]:
    torch.manual_seed(1)
    settings = merged(PRESETS["bahdanau"][1]["model"], {"tie": "none"})
    model = Seq2Seq(ModelSettings.parse(settings), source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY).eval()
    with torch.no_grad():
        model.output.bias[END] = -1e4
    model = lowered(model) if low else model
    source = sources()
    how = Search(beam, longest=SAID, relative=100.0, patient=False)
    return lambda: search(model, source, source != PAD, how)


def theirs(beam: int) -> Callable[[], object]:
    from joeynmt.search import beam_search, greedy

    torch.manual_seed(1)
    parts, _ = joeynmt(SHAPES["recurrent"])
    tables: Any = list(parts.eval().children())
    source_table, target_table, encoder, decoder = tables
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
            self, *, return_type: str, trg_input: Tensor, decoder_hidden: Any, att_vector: Any, **more: Any
        ) -> Any:
            assert return_type == "decode"
            return decoder(
                trg_embed=target_table(trg_input),
                encoder_output=more["encoder_output"],
                encoder_hidden=more["encoder_hidden"],
                src_mask=more["src_mask"],
                unroll_steps=more["unroll_steps"],
                hidden=decoder_hidden,
                prev_att_vector=att_vector,
            )

    model: Any = Model()

    @torch.inference_mode()
    def run() -> object:
        output, hidden = encoder(source_table(source), lengths, mask)
        if beam == 1:
            return greedy(mask, SAID, model, output, hidden, min_output_length=SAID)
        return beam_search(model, beam, output, hidden, mask, SAID, 1.0, min_output_length=SAID)

    return run


def main() -> None:
    if len(sys.argv) == 3:  # a worker
        name, beam = sys.argv[1], int(sys.argv[2])
        serve(theirs(beam) if name == "joeynmt" else ours(beam, low=name == "ours-int8"))
        return
    claims = []
    for beam in (5, 1):
        taken = interleaved({name: Worker("bench.searching", name, str(beam)) for name in CANDIDATES}, ROUNDS)
        print(f"\nbeam {beam}: sentences per second, {SAID} words each")
        for name, seconds in taken.items():
            print(f"  {name:12} {SENTENCES / seconds:8.1f}")
        what = f"recurrent model with attention, beam {beam}"
        claims.append(Claim(what, "JoeyNMT", taken["joeynmt"] / min(taken["ours"], taken["ours-int8"]), 10.0))
    report(claims)


if __name__ == "__main__":
    main()
