"""Models of Hugging Face's with random weights, and vocabularies learnt from a few lines, as folders."""

import json
import os
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

LINES = [
    "A dog runs in the park, and two cats sleep under the old tree.",
    "Ein Hund läuft im Park; zwei Katzen schlafen unter dem alten Baum!",
    "Un chien court dans le parc. Où sont les chats ?",
    "Собака бежит по парку, а кошки спят.",
    "狗在公园里跑，两只猫在树下睡觉。",
    "the quick brown fox jumps over 13 lazy dogs 2024-05-17 again and again",
]
# What tokenisers stumble over: accents in two forms, unseen scripts, emoji, signs, blanks, case, long words.
HARD = [
    *LINES,
    "",
    " leading and trailing ",
    "tabs\tand\nnew lines\r\n  and   runs of blanks",
    "Ünïcödé café café naïve ﬁre ① ½ ＡＢＣ",
    "İstanbul ẞ ß ǅ ὈΔΥΣΣΕΎΣ",
    "مرحبا بالعالم שלום עולם नमस्ते दुनिया สวัสดี ชาวโลก",
    "👩‍👩‍👧‍👦 🇩🇪 👍🏽 zero\u200bwidth soft\u00adhyphen bidi\u202etxt",
    "don't can't it's we'll e-mail http://a.b/c?d=e#f x=y<z>w \\ ` ~ @ _ ___",
    "A" * 150,
    "漢字かな交じり文。「引用」、句読点！",
    "한국어 텍스트 입니다",
    "\u0000\u0001control \ufffd replacement",
]


def wordpiece(folder: Path, size: int = 300) -> int:
    """A tokenizer.json as BERT has; the number of its entries."""
    from tokenizers import BertWordPieceTokenizer

    made = BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(LINES, vocab_size=size, min_frequency=1)
    made.save(str(folder / "tokenizer.json"))
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    about = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return int(made.get_vocab_size())


def byte_pairs(folder: Path, special: list[str], kind: str, size: int = 400) -> int:
    """vocab.json and merges.txt as RoBERTa and GPT-2 have; the number of their entries."""
    from tokenizers import ByteLevelBPETokenizer

    made = ByteLevelBPETokenizer()
    made.train_from_iterator(LINES, vocab_size=size, min_frequency=1, special_tokens=special)
    made.save_model(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    return int(made.get_vocab_size())


def unigrams(folder: Path, size: int = 300) -> int:
    """A tokenizer.json as Pegasus has; the number of its entries."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>")
    made.train_from_iterator(LINES * 5, trainer)
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    made.save(str(folder / "tokenizer.json"))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return int(made.get_vocab_size())


def marian_pieces(folder: Path) -> int:
    """source.spm, target.spm and vocab.json; the number of entries."""
    import sentencepiece

    numbers = {"</s>": 0, "<unk>": 1}
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 3),
            model_prefix=str(folder / side),
            vocab_size=140 if side == "source" else 150,
            model_type="unigram",
            character_coverage=1.0,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for at in range(processor.get_piece_size()):
            numbers.setdefault(processor.id_to_piece(at), len(numbers))
    numbers["<pad>"] = len(numbers)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    names = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return len(numbers)


SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def make(kind: str, folder: Path) -> Any:
    """A model with random weights that are far from their beginnings, saved; in evaluation mode."""
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    family, _, head = kind.partition(" ")
    config: Any
    ids: dict[str, Any]
    sizes: dict[str, Any]
    sides: dict[str, Any]
    if family == "bert":
        config = transformers.BertConfig(vocab_size=wordpiece(folder), max_position_embeddings=64, **SMALL)
    elif family == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
        config = transformers.DistilBertConfig(vocab_size=wordpiece(folder), max_position_embeddings=64, **sizes)
    elif family == "roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        size = byte_pairs(folder, special, "RobertaTokenizer")
        ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
        config = transformers.RobertaConfig(
            vocab_size=size, max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, **SMALL, **ids
        )
    elif family == "gpt_neox":
        size = byte_pairs(folder, ["<|endoftext|>"], "GPT2Tokenizer")
        about = {"tokenizer_class": "GPT2Tokenizer"}
        about |= {f"{name}_token": "<|endoftext|>" for name in ("bos", "eos", "unk")}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
        config = transformers.GPTNeoXConfig(
            vocab_size=size, max_position_embeddings=64, use_parallel_residual=False, rotary_pct=1.0,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
            bos_token_id=0, eos_token_id=0, **SMALL,
        )  # fmt: skip
    elif family == "pegasus":
        size = unigrams(folder)
        sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
                 (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))}  # fmt: skip
        config = transformers.PegasusConfig(
            vocab_size=size, d_model=32, max_position_embeddings=64, scale_embedding=True, activation_function="relu",
            pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None, **sizes,
        )  # fmt: skip
    elif family == "gpt2":
        size = byte_pairs(folder, ["<|endoftext|>"], "GPT2Tokenizer")
        ids = {"bos_token_id": 0, "eos_token_id": 0}
        config = transformers.GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4, n_positions=64, **ids)
    else:
        size = marian_pieces(folder)
        sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
                 (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))}  # fmt: skip
        ids = {
            "pad_token_id": size - 1,
            "decoder_start_token_id": size - 1,
            "eos_token_id": 0,
            "forced_eos_token_id": 0,
        }
        config = transformers.MarianConfig(
            vocab_size=size, d_model=32, max_position_embeddings=64, activation_function="swish", scale_embedding=True,
            **sides, **ids,
        )  # fmt: skip
    if head.endswith("Classification"):
        config.num_labels = 3
        config.id2label = {0: "bad", 1: "fair", 2: "good"}
        config.label2id = {"bad": 0, "fair": 1, "good": 2}
    model = getattr(transformers, head)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:  # sinusoids stay
                continue
            usual = 1.0 if parameter.ndim == 1 and "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(usual + 0.3 * torch.randn_like(parameter))
        if family == "marian":
            model.final_logits_bias.normal_(std=0.5)
            model.final_logits_bias[0, 0] = 9.5  # outputs end
    model.save_pretrained(folder)
    return model
