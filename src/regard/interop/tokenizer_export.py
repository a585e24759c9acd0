"""A run's SentencePiece tokenizer as an equivalent tokenizer of Hugging Face's package `tokenizers`.

The merges of BPE are not in the SentencePiece model, but follow from its scores: the adjacent pieces whose union has
the best score are merged first. For unigram models, the scores are the model.
"""

import json
from typing import Any

import sentencepiece

from regard.data.tokenizers.tokenizer import SPACE, SubwordTokenizer
from regard.errors import RegardError
from regard.models.settings import Architecture
from regard.special_tokens import BOS, EOS, MASK, PAD, UNK

BLANKS = r"[ \t\r\n\u2028\u2029]+"
UNUSED_SCORE = -10.0  # relative to the lowest score, for pieces that never occur in a tokenized text


def tokenizer_files(
    subwords: SubwordTokenizer, architecture: Architecture, *, lowercase: bool, masks: bool, max_length: int
) -> dict[str, bytes]:
    """tokenizer.json and tokenizer_config.json. masks: the vocabulary has a mask token. Raises RegardError for subwords
    that have no such form."""
    names = subwords.pieces(_special_tokens(masks=masks))
    special = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token", "mask_token"), names, strict=False))
    if architecture == "encoder":
        special |= {"cls_token": names[BOS], "sep_token": names[EOS]}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        **special,
        "clean_up_tokenization_spaces": False,
    }
    content = _tokenizer(subwords, architecture, lowercase=lowercase, masks=masks)
    return {
        "tokenizer.json": json.dumps(content, ensure_ascii=False).encode(),
        "tokenizer_config.json": json.dumps(settings, ensure_ascii=False, indent=2).encode(),
    }


def _special_tokens(*, masks: bool) -> list[int]:
    return [PAD, UNK, BOS, EOS, *([MASK] if masks else [])]


def _tokenizer(
    subwords: SubwordTokenizer, architecture: Architecture, *, lowercase: bool, masks: bool
) -> dict[str, Any]:
    """The content of a tokenizer.json."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=subwords.model)
    pieces = [processor.id_to_piece(token) for token in range(len(subwords))]
    blanks = [
        {"type": "Replace", "pattern": {"Regex": BLANKS}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(processor, pieces, masks=masks),
        "normalizer": {"type": "Sequence", "normalizers": [*([{"type": "Lowercase"}] if lowercase else []), *blanks]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "post_processor": _template(architecture, pieces),
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": _model(processor, pieces),
    }


def _model(processor: Any, pieces: list[str]) -> dict[str, Any]:
    """BPE, if all scores are ranks of merges or every piece is a single character; otherwise unigram."""
    normal = [token for token in range(len(pieces)) if _is_normal(processor, token)]
    if all(pieces[token].startswith(SPACE) for token in normal) and len(normal) > 1:
        raise RegardError("its vocabulary is of whole words, which have no form there; train with other subwords.")
    scores = {token: float(processor.get_score(token)) for token in normal}
    if all(len(pieces[token]) == 1 for token in normal) or all(score == int(score) for score in scores.values()):
        return {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[UNK],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: token for token, piece in enumerate(pieces)},
            "merges": _merges({pieces[token]: scores[token] for token in normal}),
        }
    lowest = min(scores.values())
    return {
        "type": "Unigram",
        "unk_id": UNK,
        "byte_fallback": True,
        "vocab": [[piece, scores.get(token, lowest + UNUSED_SCORE)] for token, piece in enumerate(pieces)],
    }


def _is_special(processor: Any, token: int) -> bool:
    return bool(processor.is_control(token) or processor.is_unknown(token))


def _is_symbol(processor: Any, token: int) -> bool:
    """Whether a token is a user-defined character, which is never merged: these have no score in sentencepiece."""
    if _is_special(processor, token) or processor.is_byte(token) or token >= processor.get_piece_size():
        return False
    return processor.get_score(token) == 0.0 and len(processor.id_to_piece(token)) == 1


def _is_normal(processor: Any, token: int) -> bool:
    return not (_is_special(processor, token) or processor.is_byte(token) or _is_symbol(processor, token))


def _merges(scores: dict[str, float]) -> list[list[str]]:
    """Pairs of pieces that are merged, in order."""
    pairs = []
    for piece, score in scores.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in scores and right in scores:
                pairs.append((-score, [left, right]))
    return [pair for _, pair in sorted(pairs, key=lambda each: each[0])]


def _added_tokens(processor: Any, pieces: list[str], *, masks: bool) -> list[dict[str, Any]]:
    """Special tokens and user-defined characters, which are found in a text before it is tokenized."""
    special = _special_tokens(masks=masks)
    symbols = [token for token in range(len(pieces)) if _is_symbol(processor, token)]
    return [
        {
            "id": token,
            "content": pieces[token],
            "single_word": False,
            "lstrip": masks and token == MASK,
            "rstrip": False,
            "normalized": False,
            "special": token in special,
        }
        for token in sorted({*special, *symbols})
    ]


def _template(architecture: Architecture, pieces: list[str]) -> dict[str, Any]:
    """The special tokens around a text: BOS and EOS for an encoder, EOS for the source of an encoder-decoder, BOS for a
    decoder."""

    def special(token: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": pieces[token], "type_id": 0}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    before = [special(BOS)] if architecture != "encoder-decoder" else []
    after = [special(EOS)] if architecture != "decoder" else []
    single = [*before, text("A", 0), *after]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), *after],
        "special_tokens": {
            pieces[token]: {"id": pieces[token], "ids": [token], "tokens": [pieces[token]]} for token in (BOS, EOS)
        },
    }
