"""Limits of a service. Imports no PyTorch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one request and for the queues. Field names are keys of `limits` in /v1/models."""

    body: int = 1 << 20  # bytes
    file: int = 10 << 20  # bytes of a file that is uploaded
    texts: int = 128
    characters: int = 20_000  # of all texts of a request in total
    constraint_characters: int = 2_000  # characters of all constraints: prefix, forbidden and required words, glossary
    beam: int = 10
    nbest: int = 10
    attribution_tokens: int = 64  # target tokens for which attribution is computed: its cost grows quadratically
    attribution_cells: int = 8192  # target tokens times source positions of a picture or a recording
    seconds: float = 30.0  # from the request to its response
    queued_characters: int = 200_000  # characters in a model's queue
    connections: int = 1024
