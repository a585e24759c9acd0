"""API keys: generated at random, stored as hashes, compared in constant time.

A file of keys has one line per key: a name, a space, and the hash of the key. Keys are random, so an unsalted hash is
enough.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from regard.errors import RegardError

PREFIX = "rg-"


def new_key() -> str:
    """A new random key."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """The hash that is stored in a file of keys."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class ApiKeys:
    """The valid keys. Without a file, no key is required."""

    def __init__(self, path: Path | None) -> None:
        self._hashes: dict[str, str] = {}
        if path is None:
            return
        try:
            lines = path.read_text("utf-8").splitlines()
        except OSError as error:
            raise RegardError(f"--api-keys: {path} cannot be read ({error.strerror}).") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, digest = line.strip().rpartition(" ")
            if not name or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
                raise RegardError(f"{path}, line {number}: expected a name and a hash, as regard key writes them.")
            self._hashes[digest] = name
        if not self._hashes:
            raise RegardError(f"--api-keys: {path} has no key; make one with regard key NAME >> {path}.")

    @property
    def required(self) -> bool:
        """Whether requests need a key."""
        return bool(self._hashes)

    def is_valid(self, key: str | None) -> bool:
        """Whether a request with this key is allowed. Compares with all keys, so that timing reveals nothing."""
        digest = hash_key(key or "")
        valid = False
        for known in self._hashes:
            valid |= hmac.compare_digest(known, digest)
        return valid or not self._hashes
