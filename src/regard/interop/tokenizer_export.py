"""Subwords of sentencepiece as Hugging Face's `tokenizers` has them, so that texts are cut alike without sentencepiece.

BPE's merges are not in sentencepiece's file, but follow from it: of two neighbours the pair is joined first whose union
has the best score. Unigram's scores are its model.
"""

import json
from typing import Any, Literal

import sentencepiece

from regard.data.tokenizers.tokenizer import SPACE, SubwordTokenizer
from regard.errors import RegardError
from regard.special_tokens import BEGIN, END, MASK, PAD, UNKNOWN

Framing = Literal["reads", "translates", "goes on"]  # between both marks; with an end; with a beginning


def tokenizer_of(subwords: SubwordTokenizer, framing: Framing, *, lowercase: bool, masks: bool) -> dict[str, Any]:
    """The content of a tokenizer.json. Raises RegardError for subwords that have no such form."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=subwords.model)
    count = len(subwords)
    pieces = [processor.id_to_piece(token) for token in range(count)]
    usual = [token for token in range(count) if not (processor.is_control(token) or processor.is_unknown(token))]
    normal = [token for token in usual if not processor.is_byte(token) and not _is_symbol(processor, token)]
    symbols = [token for token in usual if _is_symbol(processor, token)]
    if all(pieces[token].startswith(SPACE) for token in normal) and len(normal) > 1:
        raise RegardError("its vocabulary is of whole words, which have no form there; train with other subwords.")
    scores = {token: float(processor.get_score(token)) for token in normal}
    if all(len(pieces[token]) == 1 for token in normal) or all(score == int(score) for score in scores.values()):
        model: dict[str, Any] = {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[UNKNOWN],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: token for token, piece in enumerate(pieces)},
            "merges": _merges({pieces[token]: scores[token] for token in normal}),
        }
    else:
        least = min(scores.values())
        model = {
            "type": "Unigram",
            "unk_id": UNKNOWN,
            "byte_fallback": True,
            "vocab": [[piece, scores.get(token, least - 10.0)] for token, piece in enumerate(pieces)],
        }
    special = [PAD, UNKNOWN, BEGIN, END, *([MASK] if masks else [])]
    added = [
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
    blanks = [
        {"type": "Replace", "pattern": {"Regex": r"[ \t\r\n\u2028\u2029]+"}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [*([{"type": "Lowercase"}] if lowercase else []), *blanks]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "post_processor": _frame(framing, pieces),
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": model,
    }


def _is_symbol(processor: Any, token: int) -> bool:
    """Whether an entry is a sign that nothing is joined with: these have no score in sentencepiece."""
    piece = processor.id_to_piece(token)
    special = processor.is_control(token) or processor.is_unknown(token) or processor.is_byte(token)
    return not special and token < processor.get_piece_size() and processor.get_score(token) == 0.0 and len(piece) == 1


def _merges(scores: dict[str, float]) -> list[list[str]]:
    """Pairs that are joined, the first first."""
    found = []
    for piece, score in scores.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in scores and right in scores:
                found.append((-score, [left, right]))
    return [pair for _, pair in sorted(found, key=lambda each: each[0])]


def _frame(framing: Framing, pieces: list[str]) -> dict[str, Any]:
    def mark(token: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": pieces[token], "type_id": 0}}

    def text(name: str, part: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": part}}

    before = [mark(BEGIN)] if framing != "translates" else []
    after = [mark(END)] if framing != "goes on" else []
    single = [*before, text("A", 0), *after]
    used = [BEGIN, END]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), *after],
        "special_tokens": {
            pieces[token]: {"id": pieces[token], "ids": [token], "tokens": [pieces[token]]} for token in used
        },
    }


def tokenizer_files(
    subwords: SubwordTokenizer, framing: Framing, *, lowercase: bool, masks: bool, most: int
) -> dict[str, bytes]:
    """tokenizer.json and tokenizer_config.json."""
    names = subwords.pieces([PAD, UNKNOWN, BEGIN, END, *([MASK] if masks else [])])
    special = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token", "mask_token"), names, strict=False))
    if framing == "reads":
        special |= {"cls_token": names[BEGIN], "sep_token": names[END]}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": most, **special}
    about["clean_up_tokenization_spaces"] = False
    content = tokenizer_of(subwords, framing, lowercase=lowercase, masks=masks)
    return {
        "tokenizer.json": json.dumps(content, ensure_ascii=False).encode(),
        "tokenizer_config.json": json.dumps(about, ensure_ascii=False, indent=2).encode(),
    }
