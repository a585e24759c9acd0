"""Settings of the data: files, columns, languages, tokenization, augmentation and masking. Imports no PyTorch."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from regard.settings import Settings

Share = Annotated[float, Field(ge=0, lt=1)]
Column = str | int
LANGUAGE_TOKEN = "\uf8f1{}\uf8f2"  # the symbol of a target language, where a model has several
FILES = ("pairs", "source", "target", "text", "alignment", "valid_pairs", "valid_source", "valid_target", "valid_text")


class SubwordSettings(Settings):
    """How text is tokenized. No text is unknown: what is not in the vocabulary is encoded as bytes."""

    kind: Literal["bpe", "unigram", "character", "word"] = "bpe"
    size: Annotated[int, Field(ge=300)] | None = (
        None  # entries of the vocabulary; chosen by the data's size if not given
    )
    joint: bool = True  # one vocabulary for both sides
    coverage: Annotated[float, Field(gt=0, le=1)] = 0.9998  # share of the characters that get an entry of their own
    sampling: Annotated[float, Field(ge=0, lt=1)] = 0.0  # BPE-dropout, or subword regularization for unigram


class AugmentSettings(Settings):
    """Augmentation of images and recordings in training; text is not augmented."""

    shift: Share = 0.06  # of the side, in any direction
    zoom: Share = 0.1
    rotation: Annotated[float, Field(ge=0, le=180)] = 4.0  # degrees
    flip: bool = False  # left and right; wrong where targets mention them
    brightness: Share = 0.15  # brightness, contrast and the proportions of colors
    time_masks: Annotated[int, Field(ge=0)] = (
        2  # SpecAugment, Park et al. 2019 (arXiv:1904.08779): masked spans of time
    )
    time_width: Share = 0.08  # of a recording's frames, at most
    frequency_masks: Annotated[int, Field(ge=0)] = 2  # masked frequency bands
    frequency_width: Share = 0.2  # of all bands, at most


class MaskSettings(Settings):
    """Which tokens are masked, for masked language models."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.15  # of each token
    whole_words: bool = False  # all subwords of a word at once


class SeriesSettings(Settings):
    """Which columns of tables are series. Columns that are not named are found by their names and content."""

    time: str | None = None  # the column of times
    series: str | None = None  # the column that names the series, where a table has several
    targets: tuple[str, ...] = ()  # columns to forecast; all numeric ones if none are named
    known: tuple[str, ...] = ()  # columns that are known in advance, such as prices and holidays
    calendar: bool = False  # also features of the calendar: hour, weekday, day of the year
    horizon: Annotated[int, Field(ge=1, le=100_000)] | None = None  # steps to forecast


class DataSettings(Settings):
    """Input files, and how they are read.

    `pairs` are files with sources and targets, `source` and `target` parallel text files, and `text` files of plain
    text for language models.
    """

    pairs: tuple[Path, ...] = ()
    source: tuple[Path, ...] = ()
    target: tuple[Path, ...] = ()
    text: tuple[Path, ...] = ()
    alignment: tuple[Path, ...] = ()  # word links, 0-0 1-2, for guided attention
    valid_pairs: tuple[Path, ...] = ()
    valid_source: tuple[Path, ...] = ()
    valid_target: tuple[Path, ...] = ()
    valid_text: tuple[Path, ...] = ()
    valid_size: Annotated[int, Field(ge=1)] | None = None  # examples to hold out where no validation files are named
    source_language: str | None = None  # for files with several languages, such as TMX: "en", "pt-BR"
    target_language: str | None = None
    source_column: Column | None = None  # for TSV, CSV and JSONL: a name, or a number counted from 1
    target_column: Column | None = None
    question_column: Column | None = None  # of a table: appended to the source after a separator
    target_languages: tuple[str, ...] = ()  # several, of tables with a column for each: one model for all
    media: Path | None = None  # the folder of the images or recordings that a table names, if not its own
    lowercase: bool = False
    placeholders: bool = True  # %s, {name}, <b> and the like become symbols, where both sides have the same
    max_tokens: Annotated[int, Field(ge=1)] = 256  # tokens on either side; longer examples are rejected
    truncate: bool = False  # long sources are truncated instead: for summaries, answers and classes
    max_characters: Annotated[int, Field(ge=1)] = 20_000
    unusual_ratio: Annotated[float, Field(gt=1)] = (
        10.0  # reject pairs whose ratio of lengths is this many times the median
    )
    subwords: SubwordSettings = SubwordSettings()
    source_vocabulary: Path | None = None  # a .subwords file of another run, instead of learning one
    target_vocabulary: Path | None = None
    augment: AugmentSettings = AugmentSettings()
    mask: MaskSettings = MaskSettings()
    series: SeriesSettings = SeriesSettings()

    @field_validator(*FILES, mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str | Path) else value
