"""Encrypted storage for the values of secrets and the credentials of schema registries.

AES-256-GCM with a random key in a separate file in the data folder. The organization, kind and name of the object are
authenticated with its value, so that a value that is moved to another object cannot be decrypted.
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

from sqlshell.service.failure import Failure

FILE: Final = "secrets.key"
"""The name of the key file in the service's folder."""

UNREADABLE: Final = "58030"
_BYTES: Final = 32
_NONCE: Final = 12
_MOST: Final = 1024
"""The maximum number of bytes of the key file that are read."""

Sealed = Mapping[str, str]
"""Encrypted values: `key` identifies the key, `text` is base64."""


class Vault:
    """Encrypts and decrypts values. For any thread.

    `file` is the key file, or None for a key in memory. `used` returns whether encrypted values exist; if so, no new
    key is created.
    """

    def __init__(self, file: Path | None, used: Callable[[], bool]) -> None:
        self._file = file
        self._used = used
        self._key = b""
        self._lock = threading.Lock()

    def seal(self, organization: str, kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
        """Encrypt the values of an object. Raises Failure if there is no key and none can be created."""
        key = self._found() or self._made()
        nonce = os.urandom(_NONCE)
        plain = json.dumps(dict(values)).encode()
        text = nonce + _cipher(key).encrypt(nonce, plain, _associated_data(organization, kind, name))
        return {"key": _fingerprint(key), "text": base64.b64encode(text).decode()}

    def opened(self, organization: str, kind: str, name: str, sealed: Sealed) -> dict[str, str]:
        """Decrypt the values of an object. Raises Failure (58030) if the key is not the one that encrypted them."""
        if reason := self.broken(sealed):
            raise self._unreadable(kind, name, reason)
        from cryptography.exceptions import InvalidTag

        try:
            text = base64.b64decode(sealed["text"], validate=True)
            associated_data = _associated_data(organization, kind, name)
            plain = _cipher(self._found()).decrypt(text[:_NONCE], text[_NONCE:], associated_data)
            values: dict[str, str] = json.loads(plain)
        except (InvalidTag, ValueError, KeyError):
            raise self._unreadable(kind, name, "its stored value is damaged or belongs to another object") from None
        return values

    def broken(self, sealed: Sealed) -> str:
        """The reason why values cannot be decrypted, or ""."""
        try:
            key = self._found()
        except Failure as failure:
            return failure.message
        if not key:
            return f"the key file {FILE} does not exist"
        if sealed.get("key") != _fingerprint(key):
            return f"the key file {FILE} contains a different key"
        return ""

    @staticmethod
    def _unreadable(kind: str, name: str, reason: str) -> Failure:
        what = kind.replace("_", " ")
        remedy = f"restore {FILE} from a backup, or drop the {what} and create it again"
        return Failure(UNREADABLE, f"cannot decrypt {what} {name!r}: {reason}; {remedy}")

    def _found(self) -> bytes:
        """The key, or b"" if there is no key file. Raises Failure for an invalid key file."""
        if self._file is None:
            return self._key
        try:
            place = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise Failure(UNREADABLE, f"cannot open the key file {FILE}: {error.strerror}") from None
        try:
            state = os.fstat(place)
            if not stat.S_ISREG(state.st_mode):
                raise Failure(UNREADABLE, f"{FILE} is not a regular file")
            if state.st_mode & 0o077:
                raise Failure(UNREADABLE, f"other users can access the key file {FILE}; run: chmod 600 {FILE}")
            text = os.read(place, _MOST)
        finally:
            os.close(place)
        with contextlib.suppress(binascii.Error):
            key = base64.b64decode(text.strip(), validate=True)
            if len(key) == _BYTES:
                return key
        raise Failure(UNREADABLE, f"the key file {FILE} does not contain a key")

    def _made(self) -> bytes:
        with self._lock:
            if existing := self._found():
                return existing
            if self._used():
                cause = f"the key file {FILE} is missing, but stored secrets are encrypted with it"
                raise Failure(UNREADABLE, f"{cause}; restore it from a backup, or drop these secrets first")
            key = os.urandom(_BYTES)
            if self._file is None:
                self._key = key
                return key
            try:
                return self._written(self._file, key)
            except OSError as error:
                raise Failure(UNREADABLE, f"cannot write the key file {FILE}: {error.strerror}") from None

    def _written(self, file: Path, key: bytes) -> bytes:
        """Write the key atomically without replacing another one; returns the key that the file then contains."""
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{FILE}-") as temporary:
            os.fchmod(temporary.fileno(), 0o600)
            temporary.write(base64.b64encode(key) + b"\n")
            temporary.flush()
            os.fsync(temporary.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary.name, file)
        # The directory entry, too, must survive a loss of power.
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self._found()


def _associated_data(organization: str, kind: str, name: str) -> bytes:
    return json.dumps([organization, kind, name]).encode()


def _fingerprint(key: bytes) -> str:
    """A fingerprint that identifies a key without revealing it."""
    return hashlib.sha256(b"sqlshell secrets key" + key).hexdigest()[:16]


def _cipher(key: bytes) -> Any:
    # Loading it takes tens of milliseconds, and few services use secrets.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
