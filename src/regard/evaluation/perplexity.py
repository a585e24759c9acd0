"""How well a language model foresees a text, or guesses what is hidden in one: perplexity."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from regard.data.batching import given, padded
from regard.data.input_validation import normalize_whitespace
from regard.data.segments import framed, room
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.translator import Translator
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import BEGIN, END, MASK, PAD

AT_ONCE = 2048  # tokens
TURNS = 7  # in which every token is hidden once: a seventh is what training hides


@dataclass(frozen=True)
class Foreseen:
    """Of all documents together. Each has an end, which is to be foreseen, too."""

    documents: int
    words: int  # by white space
    tokens: int  # ends counted
    bytes: int
    log_probability: float  # natural

    perplexity: float  # exp of the mean loss of a token
    word_perplexity: float  # the same loss shared among words and ends
    bits_per_byte: float


@torch.inference_mode()
def perplexity(model: Translator, documents: Sequence[str], done: Callable[[int], None]) -> Foreseen:
    """Over plain texts. What is longer than the model reads is cut, and what follows begins with the word before."""
    side, bundle, longest = model.target_side, model.bundle, model.longest
    device = next(bundle.model.parameters()).device
    kept = bool(getattr(side, "keeps_whitespace", False))
    texts = [text if kept else normalize_whitespace(model.cased(text)) for text in documents]
    marked = getattr(model.description.model.source, "begin", True)
    steps: list[tuple[list[int], list[int]]] = []
    for tokens in side.encode(texts):
        whole = [*([BEGIN] if marked else []), *tokens, END]
        for at in range(0, len(whole) - 1, longest):
            after = whole[at + 1 : at + 1 + longest]
            steps.append((whole[at : at + len(after)], after))
    order = sorted(range(len(steps)), key=lambda number: len(steps[number][0]))
    total, count, at = 0.0, 0, 0
    while at < len(order):
        some = order[at : at + max(1, AT_ONCE // len(steps[order[min(at + 64, len(order) - 1)]][0]))]
        at += len(some)
        left = padded([steps[number][0] for number in some]).to(device)
        right = padded([steps[number][1] for number in some]).to(device)
        source, mask = (each.to(device) for each in given(model.source_side, some))
        logits = mask_reserved_tokens(bundle.model.logits(bundle.model(source, mask, left).features))
        logs = logits.log_softmax(-1).gather(2, right[..., None])[..., 0]
        there = right != PAD
        total += float(logs[there].double().sum())
        count += int(there.sum())
        done(len(some))
    words = sum(len(text.split()) for text in texts)
    size = sum(len(text.encode()) for text in texts)
    return Foreseen(
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
class Guessed:
    """Of all documents together, every token hidden once."""

    documents: int
    tokens: int
    log_probability: float  # natural

    perplexity: float  # exp of the mean loss of a hidden token
    accuracy: float  # the share of tokens that are guessed right, in percent


@torch.inference_mode()
def guessing(model: Translator, documents: Sequence[str], done: Callable[[int], None]) -> Guessed:
    """Over plain texts: in each of some turns every seventh token is hidden, another seventh each time."""
    network, reads = model.bundle.model, model.description.model.source
    device = next(network.parameters()).device
    longest = room(reads, model.longest)
    pieces = []
    for tokens in in_text(model.source_side).encode([normalize_whitespace(model.cased(text)) for text in documents]):
        pieces += [framed(tokens[at : at + longest], reads) for at in range(0, len(tokens), longest)]
    order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
    total, right, count = 0.0, 0, 0
    while order:
        some = order[: max(1, AT_ONCE // len(pieces[order[0]]))]
        order = order[len(some) :]
        whole = padded([pieces[number] for number in some]).to(device)
        words = (whole != PAD) & (whole != BEGIN) & (whole != END)
        place = torch.arange(whole.shape[1], device=device)
        for turn in range(TURNS):
            hidden = words & (place % TURNS == turn)
            if not hidden.any():
                continue
            memory = network.encode(torch.where(hidden, MASK, whole), whole != PAD)
            logits = mask_reserved_tokens(network.logits(network.decoder(whole, memory).features[hidden]))
            logs, said = logits.log_softmax(-1), whole[hidden]
            total += float(logs.gather(1, said[:, None]).double().sum())
            right += int((logs.argmax(-1) == said).sum())
            count += len(said)
        done(len(some))
    if not count:
        raise RegardError("the test set has no words.")
    return Guessed(len(documents), count, total, math.exp(-total / count), 100 * right / count)
