"""Settings of the data: which files, which columns and languages, which subwords. Imports no PyTorch."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from regard.settings import Settings

Column = str | int
FILES = ("pairs", "source", "target", "alignment", "valid_pairs", "valid_source", "valid_target")


class SubwordSettings(Settings):
    """How text is cut. Nothing is ever unknown: what is not in the vocabulary is written in bytes."""

    kind: Literal["bpe", "unigram", "character", "word"] = "bpe"
    size: Annotated[int, Field(ge=300)] | None = (
        None  # entries of the vocabulary; chosen by the data's size if not given
    )
    joint: bool = True  # one vocabulary for both sides
    coverage: Annotated[float, Field(gt=0, le=1)] = 0.9998  # share of the characters that get an entry of their own
    sampling: Annotated[float, Field(ge=0, lt=1)] = 0.0  # BPE-dropout, or subword regularisation for unigram


class DataSettings(Settings):
    """What is read. `pairs` are files with both sides, `source` and `target` text files side by side."""

    pairs: tuple[Path, ...] = ()
    source: tuple[Path, ...] = ()
    target: tuple[Path, ...] = ()
    alignment: tuple[Path, ...] = ()  # links of their words, 0-0 1-2: attention learns to look there
    valid_pairs: tuple[Path, ...] = ()
    valid_source: tuple[Path, ...] = ()
    valid_target: tuple[Path, ...] = ()
    valid_size: Annotated[int, Field(ge=1)] | None = None  # examples to hold out where no validation files are named
    source_language: str | None = None  # for files with several languages, such as TMX: "en", "pt-BR"
    target_language: str | None = None
    source_column: Column | None = None  # for TSV, CSV and JSONL: a name, or a number counted from 1
    target_column: Column | None = None
    lowercase: bool = False
    placeholders: bool = True  # keep %s, {name}, <b> and the like, where both sides of the data have the same
    longest: Annotated[int, Field(ge=1)] = 256  # tokens on either side; longer examples are set aside
    most_characters: Annotated[int, Field(ge=1)] = 20_000
    unusual_ratio: Annotated[float, Field(gt=1)] = 10.0  # set aside what is so many times longer than usual
    subwords: SubwordSettings = SubwordSettings()

    @field_validator(*FILES, mode="before")
    @classmethod
    def _one_is_a_list(cls, given: object) -> object:
        return [given] if isinstance(given, str | Path) else given
