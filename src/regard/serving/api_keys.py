"""API keys: made here, kept as hashes, compared in constant time.

A file of keys has a line for each: a name, a blank, and the hash of the key. Keys are random, so a plain hash will do.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from regard.errors import RegardError

PREFIX = "rg-"


def new_key() -> str:
    """A key nobody else has."""
    return PREFIX + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """As it is kept."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """Those that are let in; if there are none, everybody is."""

    def __init__(self, path: Path | None) -> None:
        self._hashes: dict[str, str] = {}
        if path is None:
            return
        try:
            lines = path.read_text("utf-8").splitlines()
        except OSError as error:
            raise RegardError(f"--keys: {path} cannot be read ({error.strerror}).") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, mark = line.strip().rpartition(" ")
            if not name or len(mark) != 64 or set(mark) - set("0123456789abcdef"):
                raise RegardError(f"{path}, line {number}: expected a name and a hash, as regard key writes them.")
            self._hashes[mark] = name
        if not self._hashes:
            raise RegardError(f"--keys: {path} has no key; make one with regard key NAME >> {path}.")

    @property
    def asked(self) -> bool:
        """Whether a key is asked for."""
        return bool(self._hashes)

    def fits(self, key: str | None) -> bool:
        """Whether this one is let in. All are compared, always."""
        mark = hashed(key or "")
        found = False
        for known in self._hashes:
            found |= hmac.compare_digest(known, mark)
        return found or not self._hashes
