"""CTranslate2's model folders as runs: model.bin, config.json, vocabularies, and the sentencepiece models beside them.

model.bin is a list of named arrays; it is read as such, and nothing in it is run. Weights in 8 or 16 bits become
float32 again: what rounding took is gone. The folder does not say how texts are cut; a sentencepiece model must lie in
it.
"""

import base64
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.interop.new_run import arrived, save
from regard.interop.tensor_map import Family, Place
from regard.interop.vocabularies import LARGEST, read_json
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.runs.conversion import waves
from regard.special_tokens import BEGIN, PAD

TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")  # by their number
VERSIONS = (5, 6)  # of the format
ACTIVATIONS = ("relu", "gelu-tanh", "silu", "gelu")  # by their number there
GATED = {"silu": "swiglu", "gelu": "geglu"}
# What must be as it is here: relative places, several readers, shared keys, and the like are other models.
ONLY = {
    "alibi": 0,
    "multi_query_attention": 0,
    "embeddings_merge": 0,
    "project_in": 0,
    "project_out": 0,
    "parallel_residual": 0,
}
# What says nothing of the weights.
SAID = (
    *("alibi_use_positive_positions", "alignment_heads", "alignment_layer", "scale_alibi", "scale_embeddings"),
    *("start_from_zero_embedding", "activation", "num_heads", "pre_norm", "rms_norm"),
)
BOTH = ("weight", "bias")


def import_ctranslate(folder: Path, run: Path) -> Bundle:
    """A translation model of CTranslate2's into a new run. Raises RegardError, naming what does not fit."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise RegardError(f"{folder / 'config.json'}: expected a JSON object.")
    arrays, again = read_model(folder / "model.bin")
    try:
        family = _family(arrays, again, config)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise RegardError(f"{folder / 'model.bin'}: {reason.rstrip('.')}.") from None
    zero = int(arrays.get("decoder/start_from_zero_embedding", np.zeros(())))
    sides = _vocabulary(folder, config, "source", zero=False), _vocabulary(folder, config, "target", zero=bool(zero))
    theirs = {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if array.ndim}
    if family.model.tie == "none" and "decoder/projection/bias" not in theirs:
        theirs["decoder/projection/bias"] = torch.zeros(sides[1].description["size"])
    bundle, _ = arrived(family, theirs, sides, str(folder / "model.bin"))
    _begin(bundle, zero=bool(zero))
    save(run, bundle)
    return bundle


@torch.no_grad()
def _begin(bundle: Bundle, *, zero: bool) -> None:
    """What is never said needs no number that says so; where a text begins with nothing, nothing is its vector."""
    model = bundle.model
    if model.output.bias is not None:
        model.output.bias[[PAD, BEGIN]] = 0
    if zero:
        model.decoder.embedding.weight[BEGIN] = 0


def read_model(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of a model.bin, those in fewer bits as float32, and which names are another's. Raises RegardError."""
    wrong = ValueError(f"{path}: it is no model of CTranslate2's, or damaged.")
    arrays: dict[str, NDArray[Any]] = {}
    with path.open("rb") as file:
        size = path.stat().st_size

        def take(count: int) -> bytes:
            if count > size - file.tell():
                raise wrong
            return file.read(count)

        (version,) = struct.unpack("<I", take(4))
        if version not in VERSIONS:
            raise RegardError(
                f"{path}: format {version} of CTranslate2 is not known, only {' and '.join(map(str, VERSIONS))}; "
                f"convert the model anew."
            )
        kind = _name(take, wrong)
        if kind != "TransformerSpec":
            raise RegardError(f"{path}: this is a {kind[:40]}; only models that translate (TransformerSpec) are read.")
        _, count = struct.unpack("<II", take(8))
        for _ in range(count):
            name = _name(take, wrong)
            (axes,) = struct.unpack("B", take(1))
            shape = struct.unpack(f"<{axes}I", take(4 * axes))
            number, bytes_ = struct.unpack("<BI", take(5))
            if axes > 4 or number >= len(TYPES):
                raise wrong
            arrays[name] = _array(take(bytes_), shape, TYPES[number], wrong)
        again = {}
        (count,) = struct.unpack("<I", take(4))
        for _ in range(count):
            alias = _name(take, wrong)
            again[alias] = _name(take, wrong)
    return _whole(arrays), again


def _name(take: Any, wrong: ValueError) -> str:
    (length,) = struct.unpack("<H", take(2))
    try:
        return str(take(length).rstrip(b"\0").decode())
    except UnicodeDecodeError:
        raise wrong from None


def _array(raw: bytes, shape: tuple[int, ...], kind: str, wrong: ValueError) -> NDArray[Any]:
    try:
        if kind == "bfloat16":
            wide = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
            return wide.view(np.float32).reshape(shape)
        return np.frombuffer(raw, kind).reshape(shape)
    except ValueError:
        raise wrong from None


def _whole(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """All weights as float32, those with a scale divided by it."""
    found: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if name.endswith("_scale"):
            continue
        scale = arrays.get(f"{name}_scale")
        if scale is not None:
            found[name] = array.astype(np.float32) / (scale[:, None] if scale.ndim else scale)
        else:
            found[name] = array.astype(np.float32) if array.ndim else array
    return found


def _family(arrays: Mapping[str, NDArray[Any]], again: Mapping[str, str], config: Mapping[str, Any]) -> Family:
    """What the model is, by its numbers, and where each tensor belongs."""
    for name, array in arrays.items():
        part, _, what = name.rpartition("/")
        if not array.ndim and part in ("encoder", "decoder"):
            if what in ONLY and int(array) != ONLY[what]:
                raise RegardError(f"{name} = {int(array)} is not possible here, only {ONLY[what]}")
            if what not in ONLY and what not in SAID:
                raise RegardError(f"{name} is not known here")
    source, said, shown = (
        again.get(name, name)
        for name in ("encoder/embeddings_0/weight", "decoder/projection/weight", "decoder/embeddings/weight")
    )
    tie = "all" if source == said == shown else "target" if said == shown else "none"
    places = [Place(source, ("encoder.embedding.weight",), "words")]
    if tie != "all":
        places.append(Place(shown, ("decoder.embedding.weight",), "words"))
    if tie == "none":
        places.append(Place(said, ("output.weight",), "words"))
    bias = "decoder/projection/bias" in arrays
    if bias or tie == "none":
        places.append(Place("decoder/projection/bias", ("output.bias",), "words"))
    parts = {name: _part(arrays, again, name, config, places) for name in ("encoder", "decoder")}
    starts = {"begin": bool(config.get("add_source_bos", False))}
    model = {"source": {"kind": "text", **starts}, **parts, "tie": tie, "output_bias": bias and tie != "none"}
    tables = [again.get(name, name) for name in (f"{part}/position_encodings/encodings" for part in parts)]
    computed = any(part["position"] == "sinusoidal" for part in parts.values())  # one more than are read: the beginning
    longest = min(len(arrays[table]) for table in tables) - computed
    return Family(ModelSettings.parse(model), places, longest=longest)


def _part(
    arrays: Mapping[str, NDArray[Any]],
    again: Mapping[str, str],
    name: str,
    config: Mapping[str, Any],
    places: list[Place],
) -> dict[str, Any]:
    """The settings of an encoder or a decoder; the places of its tensors are added."""
    layers = 0
    while f"{name}/layer_{layers}/ffn/linear_1/weight" in arrays:
        layers += 1
    heads = arrays.get(f"{name}/num_heads")
    if not layers or heads is None:
        raise RegardError(f"{name}/layer_0 or {name}/num_heads is missing")
    inner, width = arrays[f"{name}/layer_0/ffn/linear_1/weight"].shape[::-1]
    rms = f"{name}/layer_0/ffn/layer_norm/beta" not in arrays
    activation = ACTIVATIONS[int(arrays.get(f"{name}/activation", np.zeros(())))]
    gated = f"{name}/layer_0/ffn/linear_0_noact/weight" in arrays
    pre = bool(int(arrays.get(f"{name}/pre_norm", np.ones(()))))
    table = again.get(f"{name}/position_encodings/encodings", f"{name}/position_encodings/encodings")
    if table not in arrays:
        raise RegardError(f"{name}/position_encodings/encodings is missing")
    known = np.allclose(arrays[table], waves(*arrays[table].shape), atol=1e-6)
    epsilon = float(config.get("layer_norm_epsilon") or (1e-6 if rms else 1e-5))
    settings = {
        "kind": "transformer",
        "width": width,
        "layers": layers,
        "heads": int(heads),
        "feedforward": inner,
        "activation": GATED[activation] if gated else activation,
        "norm": "rms" if rms else "layer",
        "norm_place": "pre" if pre else "post",
        "position": "sinusoidal" if known else "learned",
        "scale_embedding": bool(int(arrays.get(f"{name}/scale_embeddings", np.ones(())))),
    }
    if not known:
        settings["positions"] = len(arrays[table])
        places.append(Place(table, (f"{name}.embedding.place.table.weight",)))
    else:
        places.append(Place(table, (), "known"))
    if epsilon != (1e-6 if rms else 1e-5):
        settings["norm_epsilon"] = epsilon

    def linear(theirs: str, *ours: str) -> None:
        places.extend(Place(f"{theirs}/{part}", tuple(f"{each}.{part}" for each in ours)) for part in BOTH)

    def norm(theirs: str, ours: str) -> None:
        places.append(Place(f"{theirs}/gamma", (f"{ours}.weight",)))
        if not rms:
            places.append(Place(f"{theirs}/beta", (f"{ours}.bias",)))

    if pre:
        norm(f"{name}/layer_norm", f"{name}.norm")
    for number in range(layers):
        there, here = f"{name}/layer_{number}", f"{name}.layers.{number}"
        norm(f"{there}/self_attention/layer_norm", f"{here}.itself_norm")
        linear(f"{there}/self_attention/linear_0", *(f"{here}.itself.{each}" for each in ("query", "key", "value")))
        linear(f"{there}/self_attention/linear_1", f"{here}.itself.output")
        if name == "decoder":
            norm(f"{there}/attention/layer_norm", f"{here}.memory_norm")
            linear(f"{there}/attention/linear_0", f"{here}.memory.query")
            linear(f"{there}/attention/linear_1", f"{here}.memory.key", f"{here}.memory.value")
            linear(f"{there}/attention/linear_2", f"{here}.memory.output")
        norm(f"{there}/ffn/layer_norm", f"{here}.feedforward_norm")
        linear(f"{there}/ffn/linear_0", f"{here}.feedforward.inner")
        if gated:
            places[-2:] = [
                Place(
                    f"{there}/ffn/linear_0/{part}",
                    (f"{here}.feedforward.inner.{part}",),
                    also=f"{there}/ffn/linear_0_noact/{part}",
                )
                for part in BOTH
            ]
        linear(f"{there}/ffn/linear_1", f"{here}.feedforward.outer")
    return settings


def _vocabulary(folder: Path, config: Mapping[str, Any], side: str, *, zero: bool) -> ImportedTokenizer:
    """What cuts texts, numbered as the model has it. zero: a text begins with nothing."""
    pieces = _pieces(folder, side)
    numbers = {piece: number for number, piece in reversed(list(enumerate(pieces)))}  # the first of a name
    names = {
        "unk_token": config.get("unk_token") or "<unk>",
        "eos_token": config.get("eos_token") or "</s>",
        "begin": config.get("decoder_start_token") or config.get("bos_token") or "<s>",
    }
    if side == "source" and config.get("add_source_bos"):
        names["begin"] = config.get("bos_token") or "<s>"
    found = {name: numbers.get(str(piece)) for name, piece in names.items()}
    for name in ("unk_token", "eos_token"):
        if found[name] is None:
            raise RegardError(f"{folder}: its {side} vocabulary has no {names[name]!r}, the {name} of config.json.")
    if found["begin"] is None and side == "target" and not zero:
        raise RegardError(f"{folder}: its target vocabulary has no {names['begin']!r}, with which a text begins.")
    pad = next((numbers[piece] for piece in ("<pad>", "<blank>") if piece in numbers), None)
    about = {
        "kind": "sentencepiece",
        "size": len(pieces),
        "special": [pad, found["unk_token"], None if zero else found["begin"], found["eos_token"]],
        "mask": None,
        "model": base64.b64encode(_cutter(folder, side)).decode(),
        "pieces": pieces,
    }
    return ImportedTokenizer.from_description(about)


def _pieces(folder: Path, side: str) -> list[str]:
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        if (folder / f"{name}.json").exists():
            found = read_json(folder / f"{name}.json")
            if not isinstance(found, list) or not all(isinstance(piece, str) for piece in found):
                raise RegardError(f"{folder / f'{name}.json'}: expected a list of texts.")
            return found
        if (folder / f"{name}.txt").exists():
            return (folder / f"{name}.txt").read_text("utf-8").removesuffix("\n").split("\n")
    raise RegardError(f"{folder}: it has no vocabulary: neither {side}_vocabulary.json nor shared_vocabulary.json.")


def _cutter(folder: Path, side: str) -> bytes:
    """The sentencepiece model of a side."""
    names = (
        f"{side}.spm",
        f"{side}.model",
        "sentencepiece.model",
        "sentencepiece.bpe.model",
        "spm.model",
        "spiece.model",
    )
    for name in names:
        path = folder / name
        if path.is_file():
            if path.stat().st_size > LARGEST:
                raise RegardError(f"{path}: it is larger than any such file.")
            return path.read_bytes()
    raise RegardError(
        f"{folder}: it does not say how texts are cut; put the model's sentencepiece files into it, as {side}.spm, or "
        f"one for both sides as sentencepiece.model."
    )
