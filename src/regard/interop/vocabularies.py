"""The vocabulary files that lie beside Hugging Face's models, as one of regard's."""

import base64
import json
from pathlib import Path
from typing import Any

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError

LARGEST = 100 << 20  # bytes of a file
SPECIAL = ("pad_token", "unk_token", "bos_token", "eos_token", "mask_token")
USUAL: dict[str, dict[str, str | None]] = {
    "bert": dict(zip(SPECIAL, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), strict=True)),
    "roberta": dict(zip(SPECIAL, ("<pad>", "<unk>", "<s>", "</s>", "<mask>"), strict=True)),
    "gpt2": dict(zip(SPECIAL, (None, None, "<|endoftext|>", "<|endoftext|>", None), strict=True)),
}
USUAL["distilbert"] = USUAL["bert"]
USUAL["gpt_neox"] = USUAL["gpt2"]
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("source.spm", "target.spm", "added_tokens.json", "generation_config.json"),
)


def read_json(path: Path) -> Any:
    """Raises RegardError if it is none, or too large to be one."""
    try:
        if path.stat().st_size > LARGEST:
            raise RegardError(f"{path}: it is larger than any such file.")
        return json.loads(path.read_text("utf-8"))
    except (OSError, RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None


def vocabularies(folder: Path, config: dict[str, Any]) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    """Of source and target; one and the same but for Marian."""
    if config["model_type"] == "fairseq-transformer":
        from regard.interop import fairseq

        return fairseq.vocabulary(folder, "source"), fairseq.vocabulary(folder, "target")
    if config["model_type"] == "marian" and not (folder / "tokenizer.json").exists():
        source, target = (_marian(folder, config, side) for side in ("source", "target"))
        return source, target
    one = _tokenizer(folder, config)
    return one, one


def _tokenizer(folder: Path, config: dict[str, Any]) -> ImportedTokenizer:
    family = config["model_type"]
    tokenizer = _from_files(folder, family)
    kind = tokenizer.get("model", {}).get("type") if isinstance(tokenizer, dict) else None
    known = {"WordPiece": "wordpiece", "BPE": "bytes", "Unigram": "metaspace"}
    if kind not in known:
        raise RegardError(f"{folder}: its tokenizer is of the kind {kind!r}, known are {', '.join(known)}.")
    names = {**USUAL.get(family, {}), **_names(folder)}
    if family in ("bert", "distilbert"):  # which call their beginning and end otherwise
        own = _names(folder, ("cls_token", "sep_token"))
        names |= {"bos_token": own.get("cls_token", "[CLS]"), "eos_token": own.get("sep_token", "[SEP]")}
    entries = _entries(tokenizer)
    size = int(config["vocab_size"])
    special = [None if names.get(each) is None else entries.get(str(names[each])) for each in SPECIAL]
    if isinstance(begins := config.get("decoder_start_token_id"), int) and 0 <= begins < size:
        special[2] = begins
    if special[3] is None or special[2] is None:
        raise RegardError(f"{folder}: its tokenizer has no {names.get('eos_token')!r}, which ends a text.")
    if any(entry >= size for entry in entries.values()):
        raise RegardError(f"{folder}: its tokenizer has more entries than the {size:,} of config.json's vocab_size.")
    masks = special[4] is not None
    about = {
        "kind": "metaspace" if _is_metaspace(tokenizer) else known[kind],
        "size": size,
        "special": special if masks else special[:4],
        "mask": names["mask_token"] if masks else None,
        "keeps_blanks": known[kind] == "bytes" and not _is_metaspace(tokenizer),
        "tokenizer": tokenizer,
    }
    return ImportedTokenizer.from_description(about)


def _is_metaspace(tokenizer: dict[str, Any]) -> bool:
    """Whether blanks are a letter of its pieces, as sentencepiece has it."""
    before = tokenizer.get("pre_tokenizer")
    return isinstance(before, dict) and before.get("type") == "Metaspace"


def _entries(tokenizer: dict[str, Any]) -> dict[str, int]:
    vocab = tokenizer["model"].get("vocab", {})
    found = {str(piece): at for at, (piece, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
    found |= {each["content"]: each["id"] for each in tokenizer.get("added_tokens", [])}
    return {str(piece): int(entry) for piece, entry in found.items()}


def _names(folder: Path, wanted: tuple[str, ...] = SPECIAL) -> dict[str, str]:
    """What its files call the special entries."""
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).exists():
            content = read_json(folder / name)
            for each in wanted:
                said = content.get(each) if isinstance(content, dict) else None
                said = said.get("content") if isinstance(said, dict) else said
                if isinstance(said, str):
                    found[each] = said
    return found


def _from_files(folder: Path, family: str) -> Any:
    """As tokenizer.json has it, or made from the files that came before there was one."""
    if (folder / "tokenizer.json").exists():
        return read_json(folder / "tokenizer.json")
    try:
        from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
    except ImportError:
        raise RegardError("importing needs the package tokenizers: pip install 'regard[interop]'.") from None
    settings = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    try:
        return json.loads(_made(folder, family, settings, BertWordPieceTokenizer, ByteLevelBPETokenizer).to_str())
    except ValueError:
        raise
    except Exception as error:  # the package raises nothing more precise
        raise RegardError(f"{folder}: its vocabulary cannot be read ({error}).") from None


def _made(folder: Path, family: str, settings: dict[str, Any], pieces: Any, pairs: Any) -> Any:
    """A tokenizer of the package, from its older files."""
    made: Any
    if (folder / "vocab.txt").exists():
        made = pieces(
            str(folder / "vocab.txt"),
            lowercase=bool(settings.get("do_lower_case", True)),
            strip_accents=settings.get("strip_accents"),
            handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        )
    elif (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        files = str(folder / "vocab.json"), str(folder / "merges.txt")
        made = pairs(*files, add_prefix_space=bool(settings.get("add_prefix_space", False)))
        names = {each for each in USUAL[family].values() if each}
        made.add_special_tokens(sorted(names))
    else:
        raise RegardError(f"{folder}: it has no vocabulary: neither tokenizer.json, nor vocab.txt, nor vocab.json.")
    return made


def _marian(folder: Path, config: dict[str, Any], side: str) -> ImportedTokenizer:
    path = folder / f"{side}.spm"
    entries = read_json(folder / "vocab.json")
    size = int(config["vocab_size"])
    if not isinstance(entries, dict) or not all(isinstance(at, int) and 0 <= at < size for at in entries.values()):
        raise RegardError(f"{folder / 'vocab.json'}: its entries do not fit config.json's vocab_size of {size:,}.")
    pieces = [f"<{at}>" for at in range(size)]
    for piece, at in entries.items():
        pieces[at] = piece
    pad, end = int(config["pad_token_id"]), int(config["eos_token_id"])
    unknown = entries.get("<unk>")
    if unknown is None:
        raise RegardError(f"{folder / 'vocab.json'}: it has no <unk>.")
    try:
        if path.stat().st_size > LARGEST:
            raise RegardError(f"{path}: it is larger than any such file.")
        model = path.read_bytes()
    except OSError as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
    about = {
        "kind": "sentencepiece",
        "size": size,
        "special": [pad, unknown, int(config.get("decoder_start_token_id", pad)), end],
        "mask": None,
        "model": base64.b64encode(model).decode(),
        "pieces": pieces,
    }
    return ImportedTokenizer.from_description(about)
