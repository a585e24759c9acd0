"""Models as ONNX graphs, which onnxruntime runs without PyTorch.

A translation model has two graphs: `encoder.onnx` (tokens, mask -> states) and `decoder.onnx` (the target so far as
`tokens`, states, mask -> logits of the next token). A decoder-only model has only the second, an encoder-only
model one `model.onnx` from tokens to its output. `export.json` names the graphs and the special tokens.
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
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.special_tokens import BOS, EOS, MASK, PAD, UNK

OPSET = 17
EXAMPLE_LENGTH = 7  # tokens of the source from which a graph is traced
BATCH = {0: "batch"}
POSITIONS = {0: "batch", 1: "positions"}
STEPS = {0: "batch", 1: "steps"}


class _Graph(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model: Any = model

    def next_logits(self, tokens: Tensor, memory: EncoderOutput) -> Tensor:
        logits: Tensor = self.model.logits(self.model.decoder(tokens, memory).features[:, -1])
        return logits


class _Encoder(_Graph):
    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.model.encode(tokens, mask).states
        return states


class _Decoder(_Graph):
    def forward(self, tokens: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        return self.next_logits(tokens, EncoderOutput(states=states, mask=mask, pooled=states.mean(1), values=states))


class _DecoderOnly(_Graph):
    def forward(self, tokens: Tensor) -> Tensor:
        empty = torch.zeros(tokens.shape[0], 0, self.model.encoder.memory_width)
        memory = EncoderOutput(states=empty, mask=empty[..., 0].bool(), pooled=empty.sum(1), values=empty)
        return self.next_logits(tokens, memory)


class _EncoderOnly(_Graph):
    """An encoder with its head: logits at every position, logits of classes, or the mean of the states."""

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        memory = self.model.encode(tokens, mask)
        head = self.model.settings.decoder
        if not head.has_output:
            mean: Tensor = memory.mean()
            return mean
        logits: Tensor = self.model.logits(self.model.decoder(tokens[:, :1], memory).features)
        return logits if head.per_position else logits[:, 0]


def export_onnx(bundle: Bundle) -> dict[str, bytes]:
    """Files by name. Raises RegardError for a model that cannot be exported."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise RegardError("onnx: the package onnx is needed: pip install 'regard[interop]'.") from None
    settings = bundle.description.model
    source = settings.source
    if not (source.is_text or source.is_empty):
        raise RegardError(f"onnx: only models of text can be exported, and this one reads {source.description}.")
    components = (settings.encoder, settings.decoder)
    if settings.decoder.copies or not all(each.exports_to_onnx for each in components):
        raise RegardError("onnx: only Transformers can be exported, without copying.")
    files = _trace(bundle.model.eval(), settings)
    special = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
    if settings.decoder.masked_lm:
        special["mask"] = MASK
    record = {"files": sorted(files), "special": special, "max_tokens": bundle.description.max_tokens}
    files["export.json"] = json.dumps(record, indent=2).encode()
    if isinstance(bundle.source_processor, SubwordTokenizer):
        files["source.subwords"] = bundle.source_processor.model
    files[bundle.target_vocabulary.target_file] = bundle.target_vocabulary.model
    return files


def _trace(model: Seq2Seq, settings: ModelSettings) -> dict[str, bytes]:
    """The graphs, with attention in plain tensor operations, which every runtime supports."""
    backends = [(module, module.backend) for module in model.modules() if isinstance(module, Attention)]
    for module, _ in backends:
        module.backend = "dense"
    try:
        return _graphs(model, settings)
    except (AssertionError, RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise RegardError(f"onnx: this model has parts that ONNX does not know ({reason}).") from None
    finally:
        for module, backend in backends:
            module.backend = backend


def _graphs(model: Seq2Seq, settings: ModelSettings) -> dict[str, bytes]:
    tokens = torch.full((2, EXAMPLE_LENGTH), EOS)
    mask = torch.ones(2, EXAMPLE_LENGTH, dtype=torch.bool)
    mask[1, 4:] = False  # so that the traced graph applies the mask
    prefix = torch.full((2, 5), BOS)
    architecture = settings.architecture
    if architecture == "decoder":
        return {"decoder.onnx": _graph(_DecoderOnly(model), (prefix,), {"tokens": STEPS}, {"logits": BATCH})}
    inputs = {"tokens": POSITIONS, "mask": POSITIONS}
    if architecture == "encoder":
        head = settings.decoder
        outputs = {"logits" if head.has_output else "vectors": POSITIONS if head.per_position else BATCH}
        return {"model.onnx": _graph(_EncoderOnly(model), (tokens, mask), inputs, outputs)}
    states = torch.randn(2, EXAMPLE_LENGTH, model.encoder.memory_width)
    decoder_inputs = {"tokens": STEPS, "states": POSITIONS, "mask": POSITIONS}
    return {
        "encoder.onnx": _graph(_Encoder(model), (tokens, mask), inputs, {"states": POSITIONS}),
        "decoder.onnx": _graph(_Decoder(model), (prefix, states, mask), decoder_inputs, {"logits": BATCH}),
    }


def _graph(module: nn.Module, example: tuple[Tensor, ...], inputs: dict[str, Any], outputs: dict[str, Any]) -> bytes:
    """inputs, outputs: names, each with its dynamic axes."""
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
    graph: bytes = content.getvalue()
    return graph
