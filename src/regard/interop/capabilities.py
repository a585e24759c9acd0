"""What a model reads and predicts, as far as other projects' formats depend on it.

Everything in `interop` that depends on a model's task asks here.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from regard.data.labels import Ends, Labels, Tags
from regard.data.vocabulary import Vocabulary
from regard.models.settings import ModelSettings

Architecture = Literal["encoder", "decoder", "encoder-decoder"]
Output = Literal["vector", "class", "positions"]


def architecture_of(model: ModelSettings) -> Architecture:
    """An encoder alone, a decoder alone, or both."""
    if model.source.kind == "nothing":
        return "decoder"
    return "encoder-decoder" if model.step_by_step else "encoder"


def encoder_output(model: ModelSettings) -> Output:
    """What an encoder alone gives: a vector, logits of one class, or logits at every position."""
    if model.decoder.kind == "none":
        return "vector"
    return "positions" if model.decoder.kind == "places" else "class"


def is_autoregressive(model: ModelSettings) -> bool:
    """Whether it predicts one token after the other."""
    return model.step_by_step


def is_masked_lm(model: ModelSettings) -> bool:
    """Whether it predicts tokens that were masked."""
    return model.guesses


def predicts_text(model: ModelSettings) -> bool:
    """Whether its target is a vocabulary of tokens, not of labels."""
    return model.says == "text"


def input_other_than_text(model: ModelSettings) -> str:
    """What it reads, if that is neither text nor nothing; otherwise empty."""
    return "" if model.source.kind in ("text", "nothing") else model.source.kind


def output_other_than_tokens(model: ModelSettings) -> str:
    """What it predicts instead of tokens, as a clause; empty if it predicts tokens."""
    if model.step_by_step or model.guesses:
        return ""
    clauses = {"label": "it predicts classes", "tags": "it predicts tags", "span": "it predicts spans"}
    return clauses.get(model.says, "it predicts nothing")


def target_vocabulary(model: ModelSettings, labels: Sequence[str], vocabulary: Vocabulary) -> Vocabulary:
    """What a model predicts: tokens of its vocabulary, the ends of spans, or labels."""
    if model.says == "text":
        return vocabulary
    if model.says == "span":
        return Ends()
    return Tags(labels) if model.tags else Labels(labels)


def target_tokens_per_source_token(model: ModelSettings) -> float:
    """The limit of an output's length, for each token of its source."""
    return 0.0 if model.source.kind == "nothing" else 2.0


def usage_hint(run: Path, model: ModelSettings) -> str:
    """The command that uses a run, in a sentence."""
    if model.source.kind == "nothing":
        return f'Continue a text with: regard generate {run} "..."'
    if model.guesses:
        return f'Fill gaps with: regard fill {run} "... ___ ..."'
    if model.spans:
        return f"Ask it with: regard translate {run} passage-and-question.tsv"
    if model.says != "text" or model.step_by_step:
        return f'Use it with: regard translate {run} "..."'
    return f'Embed texts with: regard embed {run} "..." "..."'
