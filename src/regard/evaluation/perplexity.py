"""Perplexity of language models on plain text, and of masked language models on its masked tokens."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from regard.data.batch import collate_sources, pad_sequences
from regard.data.input_validation import normalize_whitespace
from regard.data.readers import read_documents
from regard.data.segments import add_special_tokens, max_content_tokens
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.predictor import Predictor
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import BOS, EOS, MASK, PAD

BATCH_TOKENS = 2048
MASKING_ROUNDS = 7  # every token is masked once; training masks about a seventh, too


@dataclass(frozen=True)
class PerplexityResult:
    """Of all documents together. Each has an end token, which is predicted, too."""

    documents: int
    words: int  # by white space
    tokens: int  # end tokens included
    bytes: int
    log_probability: float  # natural

    perplexity: float  # exp of the mean loss of a token
    word_perplexity: float  # the same loss shared among words and end tokens
    bits_per_byte: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Lines for people to read."""
        units = {
            "perplexity": "of a token",
            "word_perplexity": "of a word, ends counted; can be compared between vocabularies",
            "bits_per_byte": "of the text",
        }
        first = f"{self.documents:,} documents, {self.words:,} words, {self.tokens:,} tokens with their ends"
        return [first, *(f"  {name:16} {getattr(self, name):9.3f}   {unit}" for name, unit in units.items())]


@torch.inference_mode()
def compute_perplexity(model: Predictor, documents: Sequence[str], advance: Callable[[int], None]) -> PerplexityResult:
    """Over plain texts. A text longer than the model's context is split into chunks, each starting with the last token
    of the one before."""
    tokenizer, bundle, limit = model.run.target_vocabulary, model.run.bundle, model.run.max_source_tokens
    device = next(bundle.model.parameters()).device
    keeps_whitespace = bool(getattr(tokenizer, "keeps_whitespace", False))
    texts = [text if keeps_whitespace else normalize_whitespace(model.run.normalize_case(text)) for text in documents]
    has_bos = getattr(model.description.model.source, "bos", True)
    chunks: list[tuple[list[int], list[int]]] = []
    for tokens in tokenizer.encode(texts):
        sequence = [*([BOS] if has_bos else []), *tokens, EOS]
        for at in range(0, len(sequence) - 1, limit):
            targets = sequence[at + 1 : at + 1 + limit]
            chunks.append((sequence[at : at + len(targets)], targets))
    order = sorted(range(len(chunks)), key=lambda number: len(chunks[number][0]))
    total, count, at = 0.0, 0, 0
    while at < len(order):
        batch = order[at : at + max(1, BATCH_TOKENS // len(chunks[order[min(at + 64, len(order) - 1)]][0]))]
        at += len(batch)
        inputs = pad_sequences([chunks[number][0] for number in batch]).to(device)
        target_tokens = pad_sequences([chunks[number][1] for number in batch]).to(device)
        source, mask = (each.to(device) for each in collate_sources(model.run.source_processor, batch))
        logits = mask_reserved_tokens(bundle.model.logits(bundle.model(source, mask, inputs).features))
        log_probabilities = logits.log_softmax(-1).gather(2, target_tokens[..., None])[..., 0]
        present = target_tokens != PAD
        total += float(log_probabilities[present].double().sum())
        count += int(present.sum())
        advance(len(batch))
    words = sum(len(text.split()) for text in texts)
    size = sum(len(text.encode()) for text in texts)
    return PerplexityResult(
        len(texts),
        words,
        count,
        size,
        total,
        math.exp(-total / count),
        math.exp(-total / (words + len(texts))),
        -total / math.log(2) / max(1, size),
    )


@dataclass(frozen=True)
class MaskedPerplexityResult:
    """Of all documents together, every token masked once."""

    documents: int
    tokens: int
    log_probability: float  # natural

    perplexity: float  # exp of the mean loss of a masked token
    accuracy: float  # the share of masked tokens that are predicted correctly, in percent

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Lines for people to read."""
        return [
            f"{self.documents:,} documents, {self.tokens:,} tokens, each masked once",
            f"  perplexity       {self.perplexity:9.3f}   of a masked token",
            f"  accuracy         {self.accuracy:9.2f}   percent of the masked tokens predicted right",
        ]


@torch.inference_mode()
def compute_masked_perplexity(
    model: Predictor, documents: Sequence[str], advance: Callable[[int], None]
) -> MaskedPerplexityResult:
    """Over plain texts: each round masks another seventh of the tokens, so that every token is masked once."""
    network, source = model.run.bundle.model, model.description.model.source
    device = next(network.parameters()).device
    limit = max_content_tokens(source, model.run.max_source_tokens)
    chunks = []
    for tokens in text_tokenizer(model.run.source_processor).encode(
        [normalize_whitespace(model.run.normalize_case(text)) for text in documents]
    ):
        chunks += [add_special_tokens(tokens[at : at + limit], source) for at in range(0, len(tokens), limit)]
    order = sorted(range(len(chunks)), key=lambda number: -len(chunks[number]))
    total, correct, count = 0.0, 0, 0
    while order:
        batch = order[: max(1, BATCH_TOKENS // len(chunks[order[0]]))]
        order = order[len(batch) :]
        input_tokens = pad_sequences([chunks[number] for number in batch]).to(device)
        maskable = (input_tokens != PAD) & (input_tokens != BOS) & (input_tokens != EOS)
        position = torch.arange(input_tokens.shape[1], device=device)
        for offset in range(MASKING_ROUNDS):
            masked = maskable & (position % MASKING_ROUNDS == offset)
            if not masked.any():
                continue
            memory = network.encode(torch.where(masked, MASK, input_tokens), input_tokens != PAD)
            logits = mask_reserved_tokens(network.logits(network.decoder(input_tokens, memory).features[masked]))
            log_probabilities, target = logits.log_softmax(-1), input_tokens[masked]
            total += float(log_probabilities.gather(1, target[:, None]).double().sum())
            correct += int((log_probabilities.argmax(-1) == target).sum())
            count += len(target)
        advance(len(batch))
    if not count:
        raise RegardError("the test set has no words.")
    return MaskedPerplexityResult(len(documents), count, total, math.exp(-total / count), 100 * correct / count)


def read_test_documents(files: Sequence[Path]) -> list[str]:
    """The texts of plain-text files. Raises RegardError if there are none."""
    if not files:
        raise RegardError("name a test set: a file of plain text, as in: regard evaluate run test.txt")
    documents = [example.source for path in files for example in read_documents(path) if not example.problem]
    if not documents:
        raise RegardError("the test set is empty.")
    return documents


def check_no_metrics(run: Path, metrics: Sequence[str] | None) -> None:
    """Raise RegardError if metrics were asked for, which a language model has none of."""
    if metrics is not None:
        raise RegardError(f"{run}: a language model has perplexity only; give files of plain text, and no more.")
