"""Transformers on the processor, by our own C (native/translate.c). PyTorch is never imported.

Without padding, each source with its own shortlist, and to the last bit independent of its company. In float32, or in
int8, where the words that can matter are looked at again in float32.
"""

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import native
from regard.decoding.conversion import Arrays, read_arrays, waves
from regard.decoding.engines import cores
from regard.decoding.folder import Opened
from regard.decoding.results import Hypothesis, Search, Wish
from regard.decoding.shortlist import Shortlist
from regard.models.settings import TransformerDecoder, TransformerEncoder

ACTIVATIONS = ("relu", "gelu", "swiglu", "geglu")
TOGETHER = 16  # sources searched together: their rows fill the processor's vectors, their caches its caches

Part = TransformerEncoder | TransformerDecoder


class NativeEngine:
    """A model in our own C."""

    name = "native"
    at_once = 1 << 20

    def __init__(
        self, opened: Opened, *, kind: str = "float32", threads: int = 0, shortlist: Shortlist | None = None
    ) -> None:
        library = native.library()
        if library is None:
            raise ValueError(f"our own engine cannot be built: {native.why_not()}.")
        self._library, self._shortlist = library, shortlist
        self.kind = kind
        self._longest = opened.description.longest
        self._pool = ThreadPoolExecutor(threads or cores(), thread_name_prefix="regard")
        self._model = self._made(opened)

    def _made(self, opened: Opened) -> ctypes.c_void_p:
        model = opened.description.model
        encoder, decoder = model.encoder, model.decoder
        assert isinstance(encoder, TransformerEncoder)
        assert isinstance(decoder, TransformerDecoder)
        arrays = read_arrays(opened.folder / "model.safetensors")
        source = "encoder.embedding.weight"
        target = source if model.tie == "all" else "decoder.embedding.weight"
        given = _Given(arrays, encoder.width)
        longest = self._longest + 1
        given.side("encoder", encoder, source, len(opened.source_subwords), longest)
        given.side("decoder", decoder, target, len(opened.target_subwords), longest)
        V, own = len(opened.target_subwords), model.tie == "none"
        given.put(arrays.get("output.weight" if own else target), "output.weight", shape=(V, encoder.width))
        given.put(arrays.get("output.bias"), "output.bias", needed=own, shape=(V,))
        numbers = (ctypes.c_int64 * len(given.numbers))(*given.numbers)
        scales = (ctypes.c_float * 3)(*given.scales, 1e-5 if encoder.norm == "layer" else 1e-6)
        pointers = (ctypes.c_void_p * len(given.arrays))(
            *(None if each is None else each.ctypes.data for each in given.arrays)
        )
        make = self._library.regard_model_new
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
        chunks = [sources[at : at + TOGETHER] for at in range(0, len(sources), TOGETHER)]
        if len(chunks) < 2:
            return self._found(sources, how)
        return [found for some in self._pool.map(lambda chunk: self._found(chunk, how), chunks) for found in some]

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
        failed = self._library.regard_translate(
            self._model,
            _at(tokens),
            _at(starts),
            ctypes.c_int64(count),
            _at(limits),
            ctypes.c_int64(how.beam),
            ctypes.c_int64(how.nbest),
            ctypes.c_float(how.length_penalty),
            ctypes.c_int64(how.patient),
            _at(words),
            _at(word_starts),
            ctypes.c_int64(longest),
            _at(out),
            _at(lengths),
            _at(totals),
        )
        if failed:
            raise MemoryError
        if not lengths[:, 0].all():
            raise ValueError(
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


class _Given:
    """Weights in the order in which native/translate.c reads them."""

    def __init__(self, arrays: Arrays, width: int) -> None:
        self._from, self._width = arrays, width
        self.numbers: list[int] = [width]
        self.scales: list[float] = []
        self.arrays: list[NDArray[np.float32] | None] = []

    def put(self, array: NDArray[Any] | None, name: str, *, needed: bool = True, shape: tuple[int, ...] = ()) -> None:
        """One more. Raises ValueError if it is missing, or of another shape: C would read beyond its end."""
        if array is None and needed:
            raise ValueError(f"model.safetensors: tensor {name} is missing.")
        if array is not None and shape and array.shape != shape:
            raise ValueError(f"model.safetensors: tensor {name} is {array.shape}, not {shape}.")
        self.arrays.append(None if array is None else np.ascontiguousarray(array, np.float32))

    def side(self, name: str, settings: Part, table: str, vocabulary: int, longest: int) -> None:
        """An encoder or a decoder."""
        D, inner = self._width, settings.feedforward
        places: NDArray[np.float32] | None = None
        if settings.position == "learned":
            places = self._from.get(f"{name}.embedding.place.table.weight")
            longest = settings.positions
        elif settings.position == "sinusoidal":
            places = waves(longest, D)
        activation = ACTIVATIONS.index(settings.activation)
        pre = int(settings.norm_place == "pre")
        self.numbers += [settings.layers, settings.heads, inner, activation, pre, vocabulary, longest]
        self.scales.append(D**0.5 if settings.scale_embedding else 1.0)
        self.put(self._from.get(table), table, shape=(vocabulary, D))
        self.put(places, "positions", needed=settings.position == "learned", shape=(longest, D))
        wide = inner * (2 if activation >= 2 else 1)
        for number in range(settings.layers):
            here = f"{name}.layers.{number}"
            self._norm(f"{here}.itself_norm", settings)
            self._joined(here + ".itself", ("query", "key", "value"))
            self._joined(here + ".itself", ("output",))
            if name == "decoder":
                self._norm(f"{here}.memory_norm", settings)
                self._joined(here + ".memory", ("query",))
                self._joined(here + ".memory", ("key", "value"))
                self._joined(here + ".memory", ("output",))
            self._norm(f"{here}.feedforward_norm", settings)
            for part, shape in (("inner", (wide, D)), ("outer", (D, inner))):
                where = f"{here}.feedforward.{part}"
                self.put(self._from.get(f"{where}.weight"), f"{where}.weight", shape=shape)
                self.put(self._from.get(f"{where}.bias"), f"{where}.bias", shape=shape[:1])
        if settings.norm_place == "pre":
            self._norm(f"{name}.norm", settings)
        else:
            self.arrays += [None, None]

    def _norm(self, name: str, settings: Part) -> None:
        self.put(self._from.get(f"{name}.weight"), f"{name}.weight", shape=(self._width,))
        if settings.norm == "rms":
            self.arrays.append(None)
        else:
            self.put(self._from.get(f"{name}.bias"), f"{name}.bias", shape=(self._width,))

    def _joined(self, where: str, parts: Sequence[str]) -> None:
        D = self._width
        for kind, shape in (("weight", (D, D)), ("bias", (D,))):
            found = [self._from.get(f"{where}.{part}.{kind}") for part in parts]
            for part, array in zip(parts, found, strict=True):
                if array is None or array.shape != shape:
                    raise ValueError(f"model.safetensors: tensor {where}.{part}.{kind} is missing, or not {shape}.")
            self.put(np.concatenate([array for array in found if array is not None]), where)
