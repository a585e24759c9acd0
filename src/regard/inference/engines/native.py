"""Transformers and recurrent models on the CPU, by our own C (native/beam_search.c). PyTorch is never imported.

Sources are not padded, each has its own shortlist, and results are batch-invariant to the last bit. In float32, or in
int8, where the best tokens of each step are rescored in float32.
"""

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import native
from regard.alignment.shortlist import Shortlist
from regard.errors import RegardError
from regard.inference.engines.base import ENGINES, Engine, available_cores, reason_not_on_cpu
from regard.inference.engines.native_weights import Weights, build_weights, unsupported_reason
from regard.inference.results import Hypothesis
from regard.inference.search_config import Constraints, SearchConfig
from regard.native import abi
from regard.runs.folder import RunFolder

# Hypotheses that are searched together, and sources at least. Small models stay in the CPU's caches, and the sources
# must leave room for them there; the weights of large ones are read from memory again for every group of sources.
BATCH_HYPOTHESES = 16
MIN_SOURCES_SMALL, MIN_SOURCES_LARGE = 4, 16
MAX_SMALL_PARAMETERS = 1 << 23
MAX_ERROR_BYTES = 1000


@ENGINES.register("native")
class NativeEngine(Engine):
    """A model in our own C."""

    name, title, priority = "native", "the native engine", 30
    batch_tokens = 1 << 20

    def __init__(
        self, opened: RunFolder, *, precision: str = "float32", threads: int = 0, shortlist: Shortlist | None = None
    ) -> None:
        library = native.library()
        if library is None:
            raise RegardError(f"our own engine cannot be built: {native.unavailable_reason()}.")
        self._library, self._shortlist = library, shortlist
        self.precision = precision
        self._threads = threads or available_cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="regard")
        weights = build_weights(opened)
        parameters = sum(each.size for each in weights.tensors.values())
        self._min_sources = MIN_SOURCES_SMALL if parameters < MAX_SMALL_PARAMETERS else MIN_SOURCES_LARGE
        self._model = new_model(library, weights, int8=precision == "int8")

    @classmethod
    def unsupported_model(cls, opened: RunFolder, device: str) -> str:
        reason = unsupported_reason(opened.description.model) or reason_not_on_cpu(device)
        return reason or ("" if native.library() is not None else native.unavailable_reason())

    @classmethod
    def open(
        cls, opened: RunFolder, *, device: str, precision: str, threads: int, shortlist: Shortlist | None
    ) -> "NativeEngine":
        return cls(opened, precision=precision, threads=threads, shortlist=shortlist)

    def __del__(self) -> None:
        if getattr(self, "_model", None) is not None:
            self._library.regard_model_free(self._model)

    def unsupported_reason(self, config: SearchConfig) -> str:
        """All but greedy and beam search."""
        return f"it has no {config.beyond_beam_search}" if config.beyond_beam_search else ""

    def search(
        self, sources: Sequence[Sequence[int]], config: SearchConfig, constraints: Sequence[Constraints] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, some of them at a time on each thread."""
        assert not any(constraints or ())
        size = max(self._min_sources, BATCH_HYPOTHESES // config.beam)
        batches = [sources[start : start + size] for start in range(0, len(sources), size)]
        run = map if self._threads == 1 or len(batches) == 1 else self._pool.map
        return [
            hypotheses
            for batch in run(lambda batch: self._search_batch(batch, config), batches)
            for hypotheses in batch
        ]

    def _search_batch(self, sources: Sequence[Sequence[int]], config: SearchConfig) -> list[list[Hypothesis]]:
        count = len(sources)
        tokens = np.concatenate([np.asarray(source, np.int64) for source in sources])
        max_lengths = np.array([config.limit(len(source)) for source in sources], np.int64)
        max_length = int(max_lengths.max())
        output_tokens = np.zeros((count, config.nbest, max_length), np.int32)
        output_lengths = np.zeros((count, config.nbest), np.int64)
        output_log_probs = np.zeros((count, config.nbest), np.float32)
        offsets = _offsets(sources)
        shortlist_tokens = shortlist_offsets = None
        if self._shortlist is not None:
            shortlists = [self._shortlist.candidates_for(source) for source in sources]
            shortlist_tokens, shortlist_offsets = np.concatenate(shortlists), _offsets(shortlists)
            assert shortlist_tokens.dtype == np.int32
        request = abi.SearchRequest(
            struct_size=ctypes.sizeof(abi.SearchRequest),
            source_count=count,
            source_tokens=_address(tokens),
            source_offsets=_address(offsets),
            max_lengths=_address(max_lengths),
            shortlist_tokens=_address(shortlist_tokens),
            shortlist_offsets=_address(shortlist_offsets),
            beam_size=config.beam,
            nbest=config.nbest,
            patient=config.patient,
            max_length=max_length,
            length_penalty=config.length_penalty,
            output_tokens=_address(output_tokens),
            output_lengths=_address(output_lengths),
            output_log_probs=_address(output_log_probs),
        )
        status = self._library.regard_model_search(self._model, ctypes.byref(request))
        if status == abi.Status.OUT_OF_MEMORY:
            raise MemoryError
        assert status == abi.Status.OK, status
        if not output_lengths[:, 0].all():
            raise RegardError(
                "the model's outputs are not finite numbers: its weights are damaged; train or copy it again."
            )
        return [
            [
                Hypothesis(row[:length].tolist(), float(log_prob), float(log_prob) / length**config.length_penalty)
                for row, length, log_prob in zip(rows, lengths.tolist(), log_probs, strict=True)
                if length
            ]
            for rows, lengths, log_probs in zip(output_tokens, output_lengths, output_log_probs, strict=True)
        ]


def new_model(library: ctypes.CDLL, weights: Weights, *, int8: bool) -> ctypes.c_void_p:
    """A model in C, which copies the weights; to be freed by regard_model_free.

    Raises ValueError, with the name, for a tensor or setting that is missing, misshapen or unknown: `build_weights` and
    the C library then contradict each other.
    """
    tensors = (abi.Tensor * len(weights.tensors))(
        *(
            abi.Tensor(name.encode(), array.ctypes.data, array.ndim, (*array.shape, 1)[:2])
            for name, array in weights.tensors.items()
        )
    )
    settings = (abi.Setting * len(weights.settings))(
        *(abi.Setting(name.encode(), value) for name, value in weights.settings.items())
    )
    description = abi.ModelDescription(
        struct_size=ctypes.sizeof(abi.ModelDescription),
        architecture=weights.architecture,
        int8=int8,
        tensors=tensors,
        tensor_count=len(tensors),
        settings=settings,
        setting_count=len(settings),
    )
    model, error = ctypes.c_void_p(), ctypes.create_string_buffer(MAX_ERROR_BYTES)
    status = library.regard_model_new(ctypes.byref(description), ctypes.byref(model), error, len(error))
    if status == abi.Status.OUT_OF_MEMORY:
        raise MemoryError
    if status != abi.Status.OK:
        raise ValueError(f"the C engine refuses the model: {error.value.decode()}")
    return model


def _offsets(sequences: Sequence[Sequence[int] | NDArray[np.int32]]) -> NDArray[np.int64]:
    """Where each sequence begins when they are concatenated, and where the last ends."""
    offsets = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([len(each) for each in sequences], out=offsets[1:])
    return offsets


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data
