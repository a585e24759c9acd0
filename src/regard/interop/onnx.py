"""Models as ONNX graphs, which onnxruntime runs without PyTorch.

What reads and what says are graphs of their own: `encoder.onnx` (tokens, mask -> states) and `decoder.onnx` (the words
so far, states, mask -> logits of the next word); a decoder alone has the second only, an encoder alone one `model.onnx`
from tokens to what it says. `export.json` names them, and the special entries.
"""

import io
import json
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import Attention
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.models.outputs import EncoderOutput
from regard.runs.bundle import Bundle
from regard.special_tokens import BEGIN, END, MASK, PAD, UNKNOWN

OPSET = 17
EXAMPLE = 7  # places of the example that a graph is made from


class _Encoder(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.model.encode(tokens, mask).states
        return states


class _Decoder(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        memory = EncoderOutput(states=states, mask=mask, pooled=states.mean(1), values=states)
        logits: Tensor = self.model.logits(self.model.decoder(words, memory).features[:, -1])
        return logits


class _Alone(nn.Module):
    """A decoder that reads nothing."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor) -> Tensor:
        nothing = torch.zeros(words.shape[0], 0, self.model.encoder.memory_width)
        memory = EncoderOutput(states=nothing, mask=nothing[..., 0].bool(), pooled=nothing.sum(1), values=nothing)
        logits: Tensor = self.model.logits(self.model.decoder(words, memory).features[:, -1])
        return logits


class _Reader(nn.Module):
    """An encoder, and what is said of it at once: logits of every place, of a class, or its vector."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        memory = self.model.encode(tokens, mask)
        if self.model.settings.decoder.kind == "none":
            mean: Tensor = memory.mean()
            return mean
        features = self.model.decoder(tokens[:, :1], memory).features
        logits: Tensor = self.model.logits(features)
        return logits if self.model.settings.decoder.kind == "places" else logits[:, 0]


def graphs(bundle: Bundle) -> dict[str, bytes]:
    """Files by name. Raises RegardError for a model that has none."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise RegardError("onnx: the package onnx is needed: pip install 'regard[interop]'.") from None
    about = bundle.description.model
    if about.source.kind not in ("text", "nothing"):
        raise RegardError(f"onnx: only models of text can be exported, and this one reads {about.source.kind}.")
    if about.copies or any(part.kind in ("recurrent", "convolutional") for part in (about.encoder, about.decoder)):
        raise RegardError("onnx: only Transformers can be exported, without copying.")
    model = bundle.model.eval()
    changed = [(part, part.backend) for part in model.modules() if isinstance(part, Attention)]
    for part, _ in changed:
        part.backend = "dense"  # plain tensor algebra, which every runtime has
    try:
        files = _made(model, about)
    except (AssertionError, RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise RegardError(f"onnx: this model has parts that ONNX does not know ({reason}).") from None
    finally:
        for part, before in changed:
            part.backend = before
    special = {"pad": PAD, "unknown": UNKNOWN, "begin": BEGIN, "end": END}
    if about.guesses:
        special["mask"] = MASK
    record = {"files": sorted(files), "special": special, "longest": bundle.description.longest}
    files["export.json"] = json.dumps(record, indent=2).encode()
    if isinstance(bundle.source_side, SubwordTokenizer):
        files["source.subwords"] = bundle.source_side.model
    files["target.subwords" if about.says == "text" else "target.labels"] = bundle.target_side.model
    return files


def _made(model: Any, about: Any) -> dict[str, bytes]:
    batch, places = {0: "batch"}, {0: "batch", 1: "places"}
    steps = {0: "batch", 1: "steps"}
    tokens = torch.full((2, EXAMPLE), END)
    mask = torch.ones(2, EXAMPLE, dtype=torch.bool)
    mask[1, 4:] = False  # with a mask, so that the graph has one
    words = torch.full((2, 5), BEGIN)
    if about.source.kind == "nothing":
        return {"decoder.onnx": _graph(_Alone(model), (words,), {"words": steps}, {"logits": batch})}
    given = {"tokens": places, "mask": places}
    if not about.step_by_step:
        says = "vectors" if about.decoder.kind == "none" else "logits"
        shape = places if about.decoder.kind == "places" else batch
        return {"model.onnx": _graph(_Reader(model), (tokens, mask), given, {says: shape})}
    states = torch.randn(2, EXAMPLE, model.encoder.memory_width)
    names = {"words": steps, "states": places, "mask": places}
    return {
        "encoder.onnx": _graph(_Encoder(model), (tokens, mask), given, {"states": places}),
        "decoder.onnx": _graph(_Decoder(model), (words, states, mask), names, {"logits": batch}),
    }


def _graph(module: nn.Module, example: tuple[Tensor, ...], inputs: dict[str, Any], outputs: dict[str, Any]) -> bytes:
    content: Any = io.BytesIO()
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            example,
            content,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={**inputs, **outputs},
            opset_version=OPSET,
            dynamo=False,
        )
    made: bytes = content.getvalue()
    return made
