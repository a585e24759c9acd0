"""regard: one system for attention and the sequence models built on it."""

__version__ = "0.1.0"
