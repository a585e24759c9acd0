"""Layers of Transformers with encoder and decoder, by the tensor names of fairseq, which others use too."""

from regard.interop.tensor_map import TensorMapping, layer


def layer_mapping(theirs: str, ours: str, *, cross_attention: bool) -> list[TensorMapping]:
    """One layer of an encoder or, with cross-attention, of a decoder."""
    tensors: list[TensorMapping] = []
    attentions = [("self_attn", "self_attention"), *([("encoder_attn", "cross_attention")] if cross_attention else [])]
    for their_name, our_name in attentions:
        for name in ("query", "key", "value"):
            tensors += layer(f"{theirs}.{their_name}.{name[0]}_proj", f"{ours}.{our_name}.{name}")
        tensors += layer(f"{theirs}.{their_name}.out_proj", f"{ours}.{our_name}.output")
        tensors += layer(f"{theirs}.{their_name}_layer_norm", f"{ours}.{our_name}_norm")
    return [
        *tensors,
        *layer(f"{theirs}.fc1", f"{ours}.feedforward.inner"),
        *layer(f"{theirs}.fc2", f"{ours}.feedforward.outer"),
        *layer(f"{theirs}.final_layer_norm", f"{ours}.feedforward_norm"),
    ]
