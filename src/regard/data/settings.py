"""Settings of the data: which files, which columns and languages, which subwords. Imports no PyTorch."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from regard.settings import Settings

Share = Annotated[float, Field(ge=0, lt=1)]
Column = str | int
LANGUAGE_SIGN = "\uf8f1{}\uf8f2"  # the symbol of a target language, where a model has several
FILES = ("pairs", "source", "target", "text", "alignment", "valid_pairs", "valid_source", "valid_target", "valid_text")


class SubwordSettings(Settings):
    """How text is cut. Nothing is ever unknown: what is not in the vocabulary is written in bytes."""

    kind: Literal["bpe", "unigram", "character", "word"] = "bpe"
    size: Annotated[int, Field(ge=300)] | None = (
        None  # entries of the vocabulary; chosen by the data's size if not given
    )
    joint: bool = True  # one vocabulary for both sides
    coverage: Annotated[float, Field(gt=0, le=1)] = 0.9998  # share of the characters that get an entry of their own
    sampling: Annotated[float, Field(ge=0, lt=1)] = 0.0  # BPE-dropout, or subword regularisation for unigram


class AugmentSettings(Settings):
    """How pictures and recordings are varied in training. Nothing here applies to text."""

    shift: Share = 0.06  # of the side, in any direction
    zoom: Share = 0.1
    turn: Annotated[float, Field(ge=0, le=180)] = 4.0  # degrees
    flip: bool = False  # left and right; wrong where a text says which is which
    light: Share = 0.15  # brightness, contrast and each colour's share
    time_masks: Annotated[int, Field(ge=0)] = 2  # SpecAugment, Park et al. 2019 (arXiv:1904.08779): stretches hidden
    time_width: Share = 0.08  # of a recording's frames, at most
    band_masks: Annotated[int, Field(ge=0)] = 2  # bands hidden
    band_width: Share = 0.2  # of all bands, at most


class MaskSettings(Settings):
    """What is hidden of plain text, for a model that learns by guessing."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.15  # of the tokens
    whole_words: bool = False  # all subwords of a word at once


class DataSettings(Settings):
    """What is read. `pairs` are files with both sides, `source` and `target` text files side by side, `text` files of
    plain text to learn a language from."""

    pairs: tuple[Path, ...] = ()
    source: tuple[Path, ...] = ()
    target: tuple[Path, ...] = ()
    text: tuple[Path, ...] = ()
    alignment: tuple[Path, ...] = ()  # links of their words, 0-0 1-2: attention learns to look there
    valid_pairs: tuple[Path, ...] = ()
    valid_source: tuple[Path, ...] = ()
    valid_target: tuple[Path, ...] = ()
    valid_text: tuple[Path, ...] = ()
    valid_size: Annotated[int, Field(ge=1)] | None = None  # examples to hold out where no validation files are named
    source_language: str | None = None  # for files with several languages, such as TMX: "en", "pt-BR"
    target_language: str | None = None
    source_column: Column | None = None  # for TSV, CSV and JSONL: a name, or a number counted from 1
    target_column: Column | None = None
    question_column: Column | None = None  # of a table: put after the source with a mark between, as after a story
    target_languages: tuple[str, ...] = ()  # several, of tables with a column for each: a model of all of them
    media: Path | None = None  # the folder of the pictures or recordings that a table names, if not its own
    lowercase: bool = False
    placeholders: bool = True  # keep %s, {name}, <b> and the like, where both sides of the data have the same
    longest: Annotated[int, Field(ge=1)] = 256  # tokens on either side; longer examples are set aside
    whole: bool = False  # a long source is cut at its end instead: for summaries, answers and classes
    most_characters: Annotated[int, Field(ge=1)] = 20_000
    unusual_ratio: Annotated[float, Field(gt=1)] = 10.0  # set aside what is so many times longer than usual
    subwords: SubwordSettings = SubwordSettings()
    source_vocabulary: Path | None = None  # a .subwords file of another run, instead of learning one
    target_vocabulary: Path | None = None
    augment: AugmentSettings = AugmentSettings()
    mask: MaskSettings = MaskSettings()

    @field_validator(*FILES, mode="before")
    @classmethod
    def _one_is_a_list(cls, given: object) -> object:
        return [given] if isinstance(given, str | Path) else given
