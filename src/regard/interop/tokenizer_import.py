"""The tokenizers of Hugging Face's models as regard's tokenizers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError

MAX_FILE_BYTES = 100 << 20
SPECIAL_TOKENS = ("pad_token", "unk_token", "bos_token", "eos_token", "mask_token")  # in the order of our own
TOKENIZER_KINDS = {"WordPiece": "wordpiece", "BPE": "bytes", "Unigram": "metaspace"}
TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("source.spm", "target.spm", "added_tokens.json", "generation_config.json"),
)


def read_bytes(path: Path) -> bytes:
    """Raises RegardError for a file that cannot be read or is larger than any vocabulary."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RegardError(f"{path}: it is larger than any such file.")
        return path.read_bytes()
    except OSError as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None


def read_json(path: Path) -> Any:
    """Raises RegardError for a file that is not JSON, or too large."""
    try:
        return json.loads(read_bytes(path).decode("utf-8"))
    except (RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None


def import_tokenizer(
    folder: Path, config: Mapping[str, Any], special_tokens: Mapping[str, str | None], bos_and_eos: tuple[str, str]
) -> ImportedTokenizer:
    """The tokenizer of a model's folder.

    special_tokens: the special tokens where its files do not define them. bos_and_eos: which of them begin and
    end a text. Raises RegardError.
    """
    tokenizer = _read_tokenizer(folder, special_tokens)
    kind = tokenizer.get("model", {}).get("type") if isinstance(tokenizer, dict) else None
    if kind not in TOKENIZER_KINDS:
        raise RegardError(f"{folder}: its tokenizer is of the kind {kind!r}, known are {', '.join(TOKENIZER_KINDS)}.")
    names: dict[str, str | None] = {**special_tokens, **_special_tokens_in(folder, SPECIAL_TOKENS)}
    own = _special_tokens_in(folder, bos_and_eos)
    for name, own_name in zip(("bos_token", "eos_token"), bos_and_eos, strict=True):
        names[name] = own.get(own_name, special_tokens.get(name))
    size = int(config["vocab_size"])
    special = _special_entries(folder, tokenizer, names, config.get("decoder_start_token_id"), size)
    has_mask = special[-1] is not None
    metaspace = _is_metaspace(tokenizer)
    description = {
        "kind": "metaspace" if metaspace else TOKENIZER_KINDS[kind],
        "size": size,
        "special": special if has_mask else special[:-1],
        "mask": names["mask_token"] if has_mask else None,
        "keeps_whitespace": kind == "BPE" and not metaspace,
        "tokenizer": tokenizer,
    }
    return ImportedTokenizer.from_description(description)


def _special_entries(
    folder: Path, tokenizer: dict[str, Any], names: Mapping[str, str | None], start: object, size: int
) -> list[int | None]:
    """The entries of their vocabulary that are our special tokens. start: the decoder's first entry, if any."""
    entries = _entries(tokenizer)
    special = [None if names.get(each) is None else entries.get(str(names[each])) for each in SPECIAL_TOKENS]
    if isinstance(start, int) and 0 <= start < size:
        special[SPECIAL_TOKENS.index("bos_token")] = start
    if special[SPECIAL_TOKENS.index("eos_token")] is None or special[SPECIAL_TOKENS.index("bos_token")] is None:
        raise RegardError(f"{folder}: its tokenizer has no {names.get('eos_token')!r}, which ends a text.")
    if any(entry >= size for entry in entries.values()):
        raise RegardError(f"{folder}: its tokenizer has more entries than the {size:,} of config.json's vocab_size.")
    return special


def _is_metaspace(tokenizer: dict[str, Any]) -> bool:
    """Whether blanks are part of its pieces, as in SentencePiece."""
    pre_tokenizer = tokenizer.get("pre_tokenizer")
    return isinstance(pre_tokenizer, dict) and pre_tokenizer.get("type") == "Metaspace"


def _entries(tokenizer: dict[str, Any]) -> dict[str, int]:
    vocab = tokenizer["model"].get("vocab", {})
    entries = {str(piece): at for at, (piece, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
    entries |= {each["content"]: each["id"] for each in tokenizer.get("added_tokens", [])}
    return {str(piece): int(entry) for piece, entry in entries.items()}


def _special_tokens_in(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """These special tokens, as a folder's files define them."""
    found: dict[str, str] = {}
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / file).exists():
            content = read_json(folder / file)
            for name in names:
                token = content.get(name) if isinstance(content, dict) else None
                token = token.get("content") if isinstance(token, dict) else token
                if isinstance(token, str):
                    found[name] = token
    return found


def _read_tokenizer(folder: Path, special_tokens: Mapping[str, str | None]) -> Any:
    """The content of tokenizer.json, or the same built from the older vocabulary files."""
    if (folder / "tokenizer.json").exists():
        return read_json(folder / "tokenizer.json")
    settings = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    try:
        return json.loads(_build_tokenizer(folder, special_tokens, settings).to_str())
    except RegardError:
        raise
    except Exception as error:  # the package raises nothing more precise
        raise RegardError(f"{folder}: its vocabulary cannot be read ({error}).") from None


def _build_tokenizer(folder: Path, special_tokens: Mapping[str, str | None], settings: dict[str, Any]) -> Any:
    try:
        from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
    except ImportError:
        raise RegardError("importing needs the package tokenizers: pip install 'regard[interop]'.") from None
    if (folder / "vocab.txt").exists():
        return BertWordPieceTokenizer(
            str(folder / "vocab.txt"),
            lowercase=bool(settings.get("do_lower_case", True)),
            strip_accents=settings.get("strip_accents"),
            handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        )
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        files = str(folder / "vocab.json"), str(folder / "merges.txt")
        tokenizer = ByteLevelBPETokenizer(*files, add_prefix_space=bool(settings.get("add_prefix_space", False)))
        tokenizer.add_special_tokens(sorted({token for token in special_tokens.values() if token}))
        return tokenizer
    raise RegardError(f"{folder}: it has no vocabulary: neither tokenizer.json, nor vocab.txt, nor vocab.json.")
