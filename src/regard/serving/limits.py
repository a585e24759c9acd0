"""What a service allows. Imports no PyTorch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for, and that may wait."""

    body: int = 1 << 20  # bytes
    file: int = 10 << 20  # bytes of a file that is uploaded
    texts: int = 128
    characters: int = 20_000  # of all texts of a request together
    wishes: int = 2_000  # characters of what it asks for: prefix, forbidden and required words, glossary
    beam: int = 10
    nbest: int = 10
    attributed: int = 64  # subwords written whose attribution is told: its cost grows with the square of their number
    attributed_looks: int = 8192  # these times the places of a picture or a recording, which may have many
    seconds: float = 30.0  # from arrival to answer
    waiting: int = 200_000  # characters in a model's queue
    connections: int = 1024
