"""Converted fairseq checkpoints predict the same as the same model in Hugging Face's FSMT; code in them never runs."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.batch import pad_sequences
from regard.interop.fairseq import convert_checkpoint, fairseq_sinusoids
from regard.interop.folder_import import import_folder
from regard.loading import load
from regard.special_tokens import BOS, EOS, PAD
from tests.interop.huggingface_models import LINES

transformers = pytest.importorskip("transformers")

SIZES = {"embed_dim": 32, "layers": 2, "attention_heads": 4, "ffn_embed_dim": 48}


def dictionary_words(count: int) -> list[str]:
    found = sorted({word for line in LINES for word in line.split()})
    return [*found, *(f"madeupword{at:04}" for at in range(count))][:count]


def settings(**more: Any) -> argparse.Namespace:
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in SIZES.items()}
    fields = {"source_lang": "en", "target_lang": "de", "max_source_positions": 64, "max_target_positions": 64}
    return argparse.Namespace(arch="transformer", **sizes, **fields, **more)


def random_fsmt(*, shared: bool = False) -> Any:
    """FSMT with random weights."""
    torch.manual_seed(5)
    config = transformers.FSMTConfig(
        langs=["en", "de"], src_vocab_size=54, tgt_vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        max_position_embeddings=64, scale_embedding=True, tie_word_embeddings=shared, activation_function="relu",
    )  # fmt: skip
    model = transformers.FSMTForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.copy_(torch.randn_like(parameter) * 0.3)
    return model


def save_checkpoint(tmp_path: Path, model: Any, args: Any, **content: Any) -> Path:
    """A checkpoint as fairseq writes it, and its dictionaries."""
    tensors = {
        name.removeprefix("model."): tensor
        for name, tensor in model.state_dict().items()
        if "embed_positions" not in name and not name.startswith("lm_head")
    }
    tensors |= {f"{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    tensors["encoder.embed_positions._float_tensor"] = torch.zeros(1)
    for language, count in (("en", 50), ("de", 60)):
        lines = "".join(f"{word} {100 - rank}\n" for rank, word in enumerate(dictionary_words(count)))
        (tmp_path / f"dict.{language}.txt").write_text(lines)
    torch.save({"args": args, "model": tensors, "extra_state": {"epoch": 3}, **content}, tmp_path / "checkpoint.pt")
    return tmp_path


def test_a_checkpoint_predicts_what_fsmt_predicts(tmp_path: Path) -> None:
    model = random_fsmt()
    folder = save_checkpoint(tmp_path, model, settings())
    convert_checkpoint(folder / "checkpoint.pt", folder, tmp_path / "plain")
    bundle = import_folder(tmp_path / "plain", tmp_path / "run")
    assert bundle.description.source_language == "en"
    source, target = bundle.source_processor, bundle.target_vocabulary
    ours = pad_sequences([[*each, EOS] for each in source.encode([line.lower() for line in LINES])])
    before = pad_sequences([[BOS, *each[:9]] for each in target.encode(LINES[::-1])])
    mask = ours != PAD
    entries, target_entries = (torch.from_numpy(side.original_ids) for side in (source, target))
    with torch.no_grad():
        expected = model(
            input_ids=entries[ours],
            attention_mask=mask.long(),
            decoder_input_ids=target_entries[before],
            use_cache=False,
        ).logits
        found = bundle.model.logits(bundle.model(ours, mask, before).features)
    is_token = before != PAD
    torch.testing.assert_close(found[is_token], expected[..., target_entries][is_token], rtol=1e-4, atol=1e-4)
    # The same tokens in autoregressive generation.
    translator = load(tmp_path / "run", engine="torch")
    for line in LINES[:3]:
        result = translator.translate(line, beam=1)
        with torch.no_grad():
            generated = model.generate(
                entries[torch.tensor([result.source_tokens])], num_beams=1, do_sample=False, max_new_tokens=9
            )
        predicted = target.to_original_ids(result.tokens[:8])  # type: ignore[attr-defined]
        assert generated[0, 1 : 1 + len(predicted)].tolist() == predicted


@pytest.mark.parametrize("old_names", [False, True])
def test_old_names_and_nested_settings_are_converted(tmp_path: Path, old_names: bool) -> None:
    model = random_fsmt()
    folder = save_checkpoint(tmp_path, model, settings())
    convert_checkpoint(folder / "checkpoint.pt", folder, tmp_path / "plain")
    reference = import_folder(tmp_path / "plain", tmp_path / "run")
    content = torch.load(folder / "checkpoint.pt", weights_only=False)
    if old_names:
        tensors = content["model"]
        for side in ("encoder", "decoder"):
            norms = ["self_attn_layer_norm", "final_layer_norm"]
            norms[1:1] = ["encoder_attn_layer_norm"] if side == "decoder" else []
            for number in range(2):
                layer = f"{side}.layers.{number}"
                for each in ("weight", "bias"):
                    for at, name in enumerate(norms):
                        tensors[f"{layer}.layer_norms.{at}.{each}"] = tensors.pop(f"{layer}.{name}.{each}")
                    projections = [tensors.pop(f"{layer}.self_attn.{kind}_proj.{each}") for kind in "qkv"]
                    tensors[f"{layer}.self_attn.in_proj_{each}"] = torch.cat(projections)
    else:
        content["cfg"] = {"model": content["args"], "task": {"source_lang": "en", "target_lang": "de"}}
        content["args"] = None
    torch.save(content, folder / "other.pt")
    convert_checkpoint(folder / "other.pt", folder, tmp_path / "other")
    second = import_folder(tmp_path / "other", tmp_path / "again")
    for name, tensor in reference.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name])


def test_sinusoids_equal_those_of_fsmt() -> None:
    table = random_fsmt().model.encoder.embed_positions.weight
    torch.testing.assert_close(fairseq_sinusoids(len(table), 32), table.detach(), rtol=0, atol=1e-6)


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_code_in_a_checkpoint_is_never_executed(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, random_fsmt(), settings(), more=Hostile(tmp_path / "was-here"))
    with pytest.raises(ValueError, match=r"plain values alone \(it has a posix\.system\)"):
        convert_checkpoint(folder / "checkpoint.pt", folder, tmp_path / "plain")
    assert not (tmp_path / "was-here").exists()
    torch.load(folder / "checkpoint.pt", weights_only=False)  # what a checkpoint could do
    assert (tmp_path / "was-here").exists()
    assert not (tmp_path / "plain").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adaptive_input": True}, "adaptive_input"),
        ({"activation_fn": "mish"}, "mish"),
        ({"encoder_layers": 3}, "encoder.layers.2.*missing"),
        ({"share_all_embeddings": True}, "is shared, and it is not"),
        ({"source_lang": "../x"}, "source_lang"),
        ({"target_lang": "fr"}, "dict.fr.txt"),
        ({"encoder_layers": 10**9}, "between 1 and 1,000"),
        ({"encoder_normalize_before": True}, "encoder.layer_norm.weight is missing"),
    ],
)
def test_unsupported_checkpoints_are_rejected_with_the_reason(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    fields = vars(settings()) | change
    folder = save_checkpoint(tmp_path, random_fsmt(), argparse.Namespace(**fields))

    def convert_and_import() -> None:
        convert_checkpoint(folder / "checkpoint.pt", folder, tmp_path / "plain")
        import_folder(tmp_path / "plain", tmp_path / "run")

    with pytest.raises(ValueError, match=message):
        convert_and_import()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"PK\x03\x04"])
def test_files_that_are_not_checkpoints_are_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.pt: it cannot be opened"):
        convert_checkpoint(tmp_path / "x.pt", tmp_path, tmp_path / "out")


def test_weights_that_are_not_finite_are_rejected(tmp_path: Path) -> None:
    model = random_fsmt()
    with torch.no_grad():
        model.model.encoder.layers[1].fc1.bias[3] = torch.nan
    folder = save_checkpoint(tmp_path, model, settings())
    convert_checkpoint(folder / "checkpoint.pt", folder, tmp_path / "plain")
    with pytest.raises(ValueError, match="not finite"):
        import_folder(tmp_path / "plain", tmp_path / "run")


def test_pieces_of_tokenized_texts_are_joined(tmp_path: Path) -> None:
    from regard.interop.fairseq import load_dictionary

    (tmp_path / "source.dict.txt").write_text("hou@@ 9\nse 8\nthe 7 #fairseq:overwrite\n", "utf-8")
    side = load_dictionary(tmp_path, "source")
    (tokens,) = side.encode(["the hou@@ se xyz"])
    assert side.to_original_ids(tokens) == [6, 4, 5, 3]
    assert side.decode([tokens[:3]]) == ["the house"]
    assert side.offsets("the hou@@ se")[1] == [(0, 3), (4, 9), (10, 12)]
