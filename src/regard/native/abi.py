"""The structs and enums of regard.h in ctypes, and what is compared when the library is loaded.

Whoever changes a struct or an enum in regard.h changes it here too, and increments both versions.
"""

import ctypes
from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar

VERSION = 1  # REGARD_ABI_VERSION

_pointer, _int64, _double = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class AbiMismatchError(Exception):
    """A library that was not compiled from the regard.h that this module mirrors."""


class Status(IntEnum):
    """`regard_status`: what a call returns."""

    OK = 0
    OUT_OF_MEMORY = 1
    INVALID_ARGUMENT = 2


class SpecialToken(IntEnum):
    """`regard_special_token`: the first entries of every vocabulary."""

    PAD = 0
    UNK = 1
    BOS = 2
    EOS = 3


class Architecture(IntEnum):
    """`regard_architecture`"""

    TRANSFORMER = 0
    RECURRENT = 1


class Activation(IntEnum):
    """`regard_activation`: of feed-forward layers."""

    RELU = 0
    GELU = 1
    GELU_TANH = 2
    SILU = 3
    SWIGLU = 4
    GEGLU = 5


class Attend(IntEnum):
    """`regard_attend`: when a recurrent decoder attends."""

    NEVER = 0
    BEFORE = 1
    AFTER = 2


class Score(IntEnum):
    """`regard_score`: how a recurrent decoder scores a query and a key."""

    ADDITIVE = 0
    BILINEAR = 1
    DOT = 2


class Extent(IntEnum):
    """`regard_extent`: which positions a recurrent decoder attends to."""

    GLOBAL = 0
    LOCAL_M = 1
    LOCAL_P = 2


class AbiConstant(ctypes.Structure):
    """`regard_abi_constant`"""

    _fields_: ClassVar = [("name", ctypes.c_char_p), ("value", _int64)]


class Tensor(ctypes.Structure):
    """`regard_tensor`"""

    _fields_: ClassVar = [
        ("name", ctypes.c_char_p),
        ("data", _pointer),
        ("dimensions", _int64),
        ("shape", _int64 * 2),
    ]


class Setting(ctypes.Structure):
    """`regard_setting`"""

    _fields_: ClassVar = [("name", ctypes.c_char_p), ("value", _double)]


class ModelDescription(ctypes.Structure):
    """`regard_model_description`"""

    _fields_: ClassVar = [
        ("struct_size", _int64),
        ("architecture", _int64),
        ("int8", _int64),
        ("tensors", ctypes.POINTER(Tensor)),
        ("tensor_count", _int64),
        ("settings", ctypes.POINTER(Setting)),
        ("setting_count", _int64),
    ]


class SearchRequest(ctypes.Structure):
    """`regard_search_request`"""

    _fields_: ClassVar = [
        ("struct_size", _int64),
        ("source_count", _int64),
        ("source_tokens", _pointer),
        ("source_offsets", _pointer),
        ("max_lengths", _pointer),
        ("shortlist_tokens", _pointer),
        ("shortlist_offsets", _pointer),
        ("beam_size", _int64),
        ("nbest", _int64),
        ("patient", _int64),
        ("max_length", _int64),
        ("length_penalty", _double),
        ("output_tokens", _pointer),
        ("output_lengths", _pointer),
        ("output_log_probs", _pointer),
    ]


STRUCTS: dict[str, type[ctypes.Structure]] = {
    "regard_abi_constant": AbiConstant,
    "regard_tensor": Tensor,
    "regard_setting": Setting,
    "regard_model_description": ModelDescription,
    "regard_search_request": SearchRequest,
}
ENUMS: dict[str, type[IntEnum]] = {
    "REGARD_": Status,
    "REGARD_TOKEN_": SpecialToken,
    "REGARD_ARCHITECTURE_": Architecture,
    "REGARD_ACTIVATION_": Activation,
    "REGARD_ATTEND_": Attend,
    "REGARD_SCORE_": Score,
    "REGARD_EXTENT_": Extent,
}


def mirrored_constants() -> dict[str, int]:
    """Sizes, offsets and values as this module has them, by the names that the library gives them."""
    values = {f"{prefix}{member.name}": int(member) for prefix, enum in ENUMS.items() for member in enum}
    for name, struct in STRUCTS.items():
        values[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            values[f"offsetof({name}, {field})"] = getattr(struct, field).offset
    return values


def _compiled_constants(library: ctypes.CDLL) -> dict[str, int]:
    """The same as the library was compiled with them."""
    count = _int64()
    library.regard_abi_constants.restype = ctypes.POINTER(AbiConstant)
    constants = library.regard_abi_constants(ctypes.byref(count))
    return {constants[i].name.decode(): constants[i].value for i in range(count.value)}


def check(library: ctypes.CDLL) -> None:
    """Compare a loaded library with this module, and declare its functions. Raises AbiMismatchError."""
    try:
        library.regard_abi_version.restype = _int64
        version = library.regard_abi_version()
        if version != VERSION:
            raise AbiMismatchError(f"the C library has ABI version {version}; native/abi.py has {VERSION}")
        if differences := list(_differences(mirrored_constants(), _compiled_constants(library))):
            raise AbiMismatchError(f"regard.h and native/abi.py differ: {'; '.join(differences)}")
        _declare(library)
    except AttributeError as error:  # a symbol that is not there
        raise AbiMismatchError(f"the C library is not regard's: {error}") from error


def _differences(mirrored: dict[str, int], compiled: dict[str, int]) -> Iterator[str]:
    for name in sorted(mirrored.keys() | compiled.keys()):
        if mirrored.get(name) != compiled.get(name):
            yield f"{name} is {compiled.get(name, 'missing')} in C and {mirrored.get(name, 'missing')} in Python"


def _declare(library: ctypes.CDLL) -> None:
    """Argument and result types of all functions but the kernels, which `native.call` converts for."""
    library.regard_simd_lanes.restype = _int64
    library.regard_int8_supported.restype = _int64
    library.regard_int8_linear_new.argtypes = [_pointer, _pointer, _int64, _int64]
    library.regard_int8_linear_new.restype = _pointer
    library.regard_int8_linear_free.argtypes = [_pointer]
    library.regard_int8_linear_free.restype = None
    library.regard_model_new.argtypes = [
        ctypes.POINTER(ModelDescription),
        ctypes.POINTER(_pointer),
        ctypes.c_char_p,
        _int64,
    ]
    library.regard_model_new.restype = ctypes.c_int32
    library.regard_model_free.argtypes = [_pointer]
    library.regard_model_free.restype = None
    library.regard_model_search.argtypes = [_pointer, ctypes.POINTER(SearchRequest)]
    library.regard_model_search.restype = ctypes.c_int32
    library.regard_max_flow_compute.argtypes = [*[_pointer] * 6, *[_int64] * 4]
    library.regard_max_flow_compute.restype = ctypes.c_int32
