"""A model in PyTorch whose linear layers are multiplied in int8, by native/low.c."""

import copy
import ctypes

import torch
from torch import Tensor, nn

from regard import native
from regard.models.seq2seq import Seq2Seq


class LowLinear(nn.Linear):
    """A linear layer without gradients: weights by one scale for each output, inputs by one for each row."""

    def __init__(self, given: nn.Linear) -> None:
        super().__init__(given.in_features, given.out_features, bias=given.bias is not None, device="meta")
        self.weight, self.bias = given.weight, given.bias
        library = native.library()
        assert library is not None
        weight = given.weight.detach().float().contiguous()
        bias = None if given.bias is None else given.bias.detach().float().contiguous()
        make = library.regard_linear_new
        make.restype = ctypes.c_void_p
        sizes = ctypes.c_int64(given.out_features), ctypes.c_int64(given.in_features)
        pointers = [ctypes.c_void_p(None if each is None else each.data_ptr()) for each in (weight, bias)]
        self._handle = int(make(*pointers, *sizes) or 0)
        if not self._handle:
            raise MemoryError
        self._free = library.regard_linear_free

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._free(ctypes.c_void_p(self._handle))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., inputs] -> [..., outputs]"""
        rows = x.reshape(-1, self.in_features).float().contiguous()
        out = rows.new_empty(len(rows), self.out_features)
        if len(rows):
            work = len(rows) * self.out_features * self.in_features // 64
            native.call("regard_linear", [rows, out], [self._handle], count=len(rows), work=work)
        return out.view(*x.shape[:-1], self.out_features)


def refuses(device: torch.device) -> str:
    """Why int8 cannot be had here, in words; empty if it can."""
    library = native.library()
    if library is None:
        return native.why_not()
    if device.type != "cpu":
        return f"int8 is for the processor, not for {device.type}"
    return "" if library.regard_whole_numbers() else "this processor has no products of whole numbers"


def lowered(model: Seq2Seq) -> Seq2Seq:
    """A copy with linear layers in int8; everything else is shared in value, not in place."""
    copied = copy.deepcopy(model)
    for module in list(copied.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, LowLinear(child))
    return copied.eval()
