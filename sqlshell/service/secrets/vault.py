"""Values that are kept encrypted: those of secrets, and the credentials of schema registries.

AES-256-GCM with a random key in a file of its own beside the data. Whose value it is (organization, kind and name of
the object) is authenticated with it, so that one that is moved to another object does not open.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlshell.service.engines.engine import Failure

FILE: Final = "secrets.key"
"""The name of the key's file in the service's folder."""

UNREADABLE: Final = "58030"
_BYTES: Final = 32
_NONCE: Final = 12
_MOST: Final = 1024
"""Bytes of a key's file that are read."""

Sealed = Mapping[str, str]
"""What is kept of values: `key` says which key they were encrypted with, `text` is base64."""


class Vault:
    """Encrypts and decrypts. `file` is that of the key, None for a key that ends with the process. `used` tells whether
    anything is kept that a key encrypted: another key is not made then. For any thread."""

    def __init__(self, file: Path | None, used: Callable[[], bool]) -> None:
        self._file = file
        self._used = used
        self._key = b""
        self._lock = threading.Lock()

    def seal(self, organization: str, kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
        """Encrypt the values of an object. Raises Failure where there is no key and none can be made."""
        key = self._found() or self._made()
        nonce = os.urandom(_NONCE)
        plain = json.dumps(dict(values)).encode()
        text = nonce + _cipher(key).encrypt(nonce, plain, _whose(organization, kind, name))
        return {"key": _number(key), "text": base64.b64encode(text).decode()}

    def opened(self, organization: str, kind: str, name: str, sealed: Sealed) -> dict[str, str]:
        """The values of an object. Raises Failure (58030) where the key is not the one that encrypted them."""
        if reason := self.broken(sealed):
            raise self._unreadable(kind, name, reason)
        from cryptography.exceptions import InvalidTag

        try:
            text = base64.b64decode(sealed["text"], validate=True)
            whose = _whose(organization, kind, name)
            plain = _cipher(self._found()).decrypt(text[:_NONCE], text[_NONCE:], whose)
            found: dict[str, str] = json.loads(plain)
        except (InvalidTag, ValueError, KeyError):
            raise self._unreadable(kind, name, "what is kept of it is damaged or belongs to something else") from None
        return found

    def broken(self, sealed: Sealed) -> str:
        """Why values cannot be decrypted, "" where they can."""
        try:
            key = self._found()
        except Failure as failure:
            return failure.message
        if not key:
            return f"the key file {FILE} is not there"
        if sealed.get("key") != _number(key):
            return f"the key file {FILE} has another key than the one that encrypted it"
        return ""

    @staticmethod
    def _unreadable(kind: str, name: str, reason: str) -> Failure:
        what = kind.replace("_", " ")
        remedy = f"put {FILE} back from a backup, or drop the {what} and make it again"
        return Failure(UNREADABLE, f"{what} {name!r} cannot be read: {reason}; {remedy}")

    def _found(self) -> bytes:
        """The key, b"" where there is none. Raises Failure for a file that holds none."""
        if self._file is None:
            return self._key
        try:
            place = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise Failure(UNREADABLE, f"the key file {FILE} cannot be opened: {error.strerror}") from None
        try:
            state = os.fstat(place)
            if not stat.S_ISREG(state.st_mode):
                raise Failure(UNREADABLE, f"{FILE} is not a file")
            if state.st_mode & 0o077:
                raise Failure(UNREADABLE, f"others may read the key file {FILE}: chmod 600 {FILE}")
            text = os.read(place, _MOST)
        finally:
            os.close(place)
        with contextlib.suppress(binascii.Error):
            key = base64.b64decode(text.strip(), validate=True)
            if len(key) == _BYTES:
                return key
        raise Failure(UNREADABLE, f"the key file {FILE} holds no key")

    def _made(self) -> bytes:
        with self._lock:
            if found := self._found():
                return found
            if self._used():
                said = f"the key file {FILE} is not there, and secrets are kept that were encrypted with it"
                raise Failure(UNREADABLE, f"{said}: put it back from a backup, or drop them first")
            key = os.urandom(_BYTES)
            if self._file is None:
                self._key = key
                return key
            try:
                return self._written(self._file, key)
            except OSError as error:
                raise Failure(UNREADABLE, f"the key file {FILE} cannot be written: {error.strerror}") from None

    def _written(self, file: Path, key: bytes) -> bytes:
        """Write the key, whole or not at all, and never in the place of another one. The key that the file has then."""
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{FILE}-") as made:
            os.fchmod(made.fileno(), 0o600)
            made.write(base64.b64encode(key) + b"\n")
            made.flush()
            os.fsync(made.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(made.name, file)
        # The name outlives a loss of power too.
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self._found()


def _whose(organization: str, kind: str, name: str) -> bytes:
    return json.dumps([organization, kind, name]).encode()


def _number(key: bytes) -> str:
    """Tells one key from another, and nothing of either."""
    return hashlib.sha256(b"sqlshell secrets key" + key).hexdigest()[:16]


def _cipher(key: bytes) -> Any:
    # It takes some tens of milliseconds to load, and few services keep secrets.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
