"""A model in PyTorch whose linear layers are quantized to int8 (native/int8_quantization.h)."""

import copy
import ctypes

import torch
from torch import Tensor, nn

from regard import native
from regard.models.seq2seq import Seq2Seq


class Int8Linear(nn.Linear):
    """A linear layer without gradients: weights have one scale per output, inputs one per row."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        library = native.library()
        assert library is not None
        weight = linear.weight.detach().float().contiguous()
        bias = None if linear.bias is None else linear.bias.detach().float().contiguous()
        pointers = [None if each is None else each.data_ptr() for each in (weight, bias)]
        self._layer = ctypes.c_void_p(
            library.regard_int8_linear_new(*pointers, linear.out_features, linear.in_features)
        )
        if not self._layer:
            raise MemoryError
        self._free = library.regard_int8_linear_free

    def __del__(self) -> None:
        if layer := getattr(self, "_layer", None):
            self._free(layer)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., inputs] -> [..., outputs]"""
        rows = x.reshape(-1, self.in_features).float().contiguous()
        out = rows.new_empty(len(rows), self.out_features)
        if len(rows):
            work = len(rows) * self.out_features * self.in_features // 64
            native.call("regard_int8_linear_forward", [rows, out], [self._layer], count=len(rows), work=work)
        return out.view(*x.shape[:-1], self.out_features)


def unsupported_reason(device: torch.device) -> str:
    """Why int8 is not available here, as a clause; empty if it is."""
    library = native.library()
    if library is None:
        return native.unavailable_reason()
    if device.type != "cpu":
        return f"int8 is for the processor, not for {device.type}"
    return "" if library.regard_int8_supported() else "this processor has no int8 products (AVX-512 VNNI)"


def quantize_model(model: Seq2Seq) -> Seq2Seq:
    """A copy whose linear layers are in int8. Nothing is shared with the original."""
    quantized = copy.deepcopy(model)
    for module in list(quantized.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, Int8Linear(child))
    return quantized.eval()
