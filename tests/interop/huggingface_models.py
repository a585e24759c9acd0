"""Hugging Face's models with random weights, and tokenizers trained on a few lines, saved as folders."""

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
# Texts that are hard to tokenize: accents in two forms, unseen scripts, emoji, symbols, blanks, case, long words.
HARD_TEXTS = [
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


def train_wordpiece(folder: Path, size: int = 300) -> int:
    """A tokenizer.json as BERT has one; the number of its entries."""
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(LINES, vocab_size=size, min_frequency=1)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    settings = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(tokenizer.get_vocab_size())


def train_byte_level_bpe(folder: Path, special: list[str], kind: str, size: int = 400) -> int:
    """vocab.json and merges.txt as RoBERTa and GPT-2 have them; the number of their entries."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(LINES, vocab_size=size, min_frequency=1, special_tokens=special)
    tokenizer.save_model(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    return int(tokenizer.get_vocab_size())


def train_unigram(folder: Path, size: int = 300) -> int:
    """A tokenizer.json as Pegasus has one; the number of its entries."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(LINES * 5, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(tokenizer.get_vocab_size())


def train_marian_sentencepiece(folder: Path) -> int:
    """source.spm, target.spm and vocab.json; the number of entries."""
    import sentencepiece

    ids = {"</s>": 0, "<unk>": 1}
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
            ids.setdefault(processor.id_to_piece(at), len(ids))
    ids["<pad>"] = len(ids)
    (folder / "vocab.json").write_text(json.dumps(ids))
    names = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return len(ids)


HIDDEN_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
SIDE_SIZES: dict[str, Any] = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
}


def bert(folder: Path) -> Any:
    return transformers().BertConfig(vocab_size=train_wordpiece(folder), max_position_embeddings=64, **HIDDEN_SIZES)


def distilbert(folder: Path) -> Any:
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
    return transformers().DistilBertConfig(vocab_size=train_wordpiece(folder), max_position_embeddings=64, **sizes)


def roberta(folder: Path) -> Any:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    return transformers().RobertaConfig(
        vocab_size=train_byte_level_bpe(folder, special, "RobertaTokenizer"),
        max_position_embeddings=66,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        **HIDDEN_SIZES,
    )


def gpt2(folder: Path) -> Any:
    size = train_byte_level_bpe(folder, ["<|endoftext|>"], "GPT2Tokenizer")
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return transformers().GPT2Config(vocab_size=size, bos_token_id=0, eos_token_id=0, **sizes)


def gpt_neox(folder: Path) -> Any:
    size = train_byte_level_bpe(folder, ["<|endoftext|>"], "GPT2Tokenizer")
    settings = {"tokenizer_class": "GPT2Tokenizer"}
    settings |= {f"{name}_token": "<|endoftext|>" for name in ("bos", "eos", "unk")}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return transformers().GPTNeoXConfig(
        vocab_size=size,
        max_position_embeddings=64,
        use_parallel_residual=False,
        rotary_pct=1.0,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        bos_token_id=0,
        eos_token_id=0,
        **HIDDEN_SIZES,
    )


def pegasus(folder: Path) -> Any:
    return transformers().PegasusConfig(
        vocab_size=train_unigram(folder),
        d_model=32,
        max_position_embeddings=64,
        scale_embedding=True,
        activation_function="relu",
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        **SIDE_SIZES,
    )


def marian(folder: Path) -> Any:
    size = train_marian_sentencepiece(folder)
    return transformers().MarianConfig(
        vocab_size=size,
        d_model=32,
        max_position_embeddings=64,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        **SIDE_SIZES,
    )


CONFIGS = {each.__name__: each for each in (bert, distilbert, roberta, gpt2, gpt_neox, pegasus, marian)}


def transformers() -> Any:
    import transformers

    return transformers


def save_random_model(kind: str, folder: Path) -> Any:
    """Save a model with random weights, far from their initial values; returns it in evaluation mode.

    kind: a family and a class of transformers, as in `bert BertForMaskedLM`.
    """
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    family, _, class_name = kind.partition(" ")
    config = CONFIGS[family](folder)
    if class_name.endswith("Classification"):
        config.num_labels = 3
        config.id2label = {0: "bad", 1: "fair", 2: "good"}
        config.label2id = {"bad": 0, "fair": 1, "good": 2}
    model = getattr(transformers(), class_name)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:  # sinusoids stay
                continue
            center = 1.0 if parameter.ndim == 1 and "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(center + 0.3 * torch.randn_like(parameter))
        if family == "marian":
            model.final_logits_bias.normal_(std=0.5)
            model.final_logits_bias[0, 0] = 9.5  # so that outputs end
    model.save_pretrained(folder)
    return model
