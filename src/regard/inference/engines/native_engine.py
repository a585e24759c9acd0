"""Transformers and recurrent models on the processor, by our own C (native/search.c). PyTorch is never imported.

Without padding, each source with its own shortlist, and to the last bit independent of its company. In float32, or in
int8, where the words that can matter are looked at again in float32.
"""

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard import native
from regard.alignment.shortlist import Shortlist
from regard.errors import RegardError
from regard.inference.engines import cores
from regard.inference.engines.native_weights import weights_of
from regard.inference.results import Hypothesis, Search, Wish
from regard.runs.folder import Opened

# Rows of hypotheses that are searched together, and sources at least. Small models stay in the processor's caches, and
# the sources must leave room for them there; the weights of large ones are read again for each few sources.
ROWS, FEW, MANY, SMALL = 16, 4, 16, 1 << 23


class _Asked(ctypes.Structure):
    """What is asked of a search: `Asked` in native/engine.h, field by field."""

    _fields_: ClassVar = [
        *((name, ctypes.c_void_p) for name in ("tokens", "starts", "limits", "words", "word_starts")),
        *((name, ctypes.c_int64) for name in ("sources", "beam", "nbest", "patient", "longest")),
        ("penalty", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("out", "lengths", "totals")),
    ]


class NativeEngine:
    """A model in our own C."""

    name = "native"
    at_once = 1 << 20

    def __init__(
        self, opened: Opened, *, kind: str = "float32", threads: int = 0, shortlist: Shortlist | None = None
    ) -> None:
        library = native.library()
        if library is None:
            raise RegardError(f"our own engine cannot be built: {native.why_not()}.")
        self._library, self._shortlist = library, shortlist
        self.kind = kind
        self._threads = threads or cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="regard")
        self._model = self._made(opened)

    def _made(self, opened: Opened) -> ctypes.c_void_p:
        given = weights_of(opened)
        size = sum(each.size for each in given.arrays if each is not None)
        self._least = FEW if size < SMALL else MANY
        numbers = (ctypes.c_int64 * len(given.numbers))(*given.numbers)
        scales = (ctypes.c_float * len(given.scales))(*given.scales)
        pointers = (ctypes.c_void_p * len(given.arrays))(
            *(None if each is None else each.ctypes.data for each in given.arrays)
        )
        make = getattr(self._library, f"regard_{given.kind}_new")
        make.restype = ctypes.c_void_p
        made = make(numbers, scales, pointers, ctypes.c_int64(self.kind == "int8"))
        if not made:
            raise MemoryError
        return ctypes.c_void_p(made)

    def __del__(self) -> None:
        if getattr(self, "_model", None) is not None:
            self._library.regard_model_free(self._model)

    def refuses(self, how: Search) -> str:
        """All but greedy and beam search."""
        return f"it has no {how.beyond}" if how.beyond else ""

    def search(
        self, sources: Sequence[Sequence[int]], how: Search, wishes: Sequence[Wish] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, some of them at a time on each thread."""
        assert not any(wishes or ())
        together = max(self._least, ROWS // how.beam)
        chunks = [sources[at : at + together] for at in range(0, len(sources), together)]
        each = map if self._threads == 1 or len(chunks) == 1 else self._pool.map
        return [found for some in each(lambda chunk: self._found(chunk, how), chunks) for found in some]

    def _found(self, sources: Sequence[Sequence[int]], how: Search) -> list[list[Hypothesis]]:
        count = len(sources)
        tokens = np.concatenate([np.asarray(source, np.int64) for source in sources])
        starts = np.zeros(count + 1, np.int64)
        np.cumsum([len(source) for source in sources], out=starts[1:])
        limits = np.array([how.limit(len(source)) for source in sources], np.int64)
        longest = int(limits.max())
        out = np.zeros((count, how.nbest, longest), np.int32)
        lengths = np.zeros((count, how.nbest), np.int64)
        totals = np.zeros((count, how.nbest), np.float32)
        words = word_starts = None
        if self._shortlist is not None:
            own = [self._shortlist.of(source) for source in sources]
            words = np.concatenate(own)
            word_starts = np.zeros(count + 1, np.int64)
            np.cumsum([len(each) for each in own], out=word_starts[1:])
        asked = _Asked(
            tokens=_at(tokens),
            starts=_at(starts),
            limits=_at(limits),
            words=_at(words),
            word_starts=_at(word_starts),
            sources=count,
            beam=how.beam,
            nbest=how.nbest,
            patient=how.patient,
            longest=longest,
            penalty=how.length_penalty,
            out=_at(out),
            lengths=_at(lengths),
            totals=_at(totals),
        )
        failed = self._library.regard_search(self._model, ctypes.byref(asked))
        if failed:
            raise MemoryError
        if not lengths[:, 0].all():
            raise RegardError(
                "the model's outputs are not finite numbers: its weights are damaged; train or copy it again."
            )
        return [
            [
                Hypothesis(row[:length].tolist(), float(total), float(total) / length**how.length_penalty)
                for row, length, total in zip(rows, own_lengths.tolist(), own_totals, strict=True)
                if length
            ]
            for rows, own_lengths, own_totals in zip(out, lengths, totals, strict=True)
        ]


def _at(array: NDArray[Any] | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)
