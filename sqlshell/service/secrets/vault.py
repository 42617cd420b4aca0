"""Encrypted storage for the values of secrets and the credentials of schema registries.

Fernet, with a random key in a separate file of the data folder. The organization, kind and name of the object are
encrypted together with its value, so that a value that is moved to another object is not accepted there.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlshell.errors import reason
from sqlshell.service.failure import Failure

FILE: Final = "secrets.key"
"""The name of the key file in the service's folder."""

UNREADABLE: Final = "58030"
_BYTES: Final = 32
_DAMAGED: Final = "its stored value is damaged or was encrypted with a different key"


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
        from cryptography.fernet import Fernet

        key = self._read_key() or self._create_key()
        plain = json.dumps([organization, kind, name, dict(values)]).encode()
        return {"text": Fernet(base64.urlsafe_b64encode(key)).encrypt(plain).decode()}

    def opened(self, organization: str, kind: str, name: str, sealed: Mapping[str, str]) -> dict[str, str]:
        """Decrypt the values of an object. Raises Failure (58030) if the key is not the one that encrypted them."""
        try:
            key = self._read_key()
            if not key:
                raise Failure(UNREADABLE, f"the key file {FILE} does not exist")
            decrypt = _decrypt_aes_gcm if "key" in sealed else _decrypt
            return decrypt(key, [organization, kind, name], sealed["text"])
        except Failure as failure:
            what = kind.replace("_", " ")
            remedy = f"restore {FILE} from a backup, or drop the {what} and create it again"
            raise Failure(UNREADABLE, f'cannot decrypt {what} "{name}": {failure.message}; {remedy}') from None

    def _read_key(self) -> bytes:
        """The key, or b"" if there is no key file. Raises Failure for an invalid key file."""
        if self._file is None:
            return self._key
        try:
            opened = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise Failure(UNREADABLE, f"cannot open the key file {FILE}: {reason(error)}") from None
        with os.fdopen(opened, "rb") as file:
            state = os.fstat(opened)
            if not stat.S_ISREG(state.st_mode):
                raise Failure(UNREADABLE, f"{FILE} is not a regular file")
            if state.st_mode & 0o077:
                raise Failure(UNREADABLE, f"other users can access the key file {FILE}; run: chmod 600 {FILE}")
            text = file.read(1024)
        try:
            key = base64.b64decode(text.strip(), validate=True)
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            raise Failure(UNREADABLE, f"the key file {FILE} does not contain a key")
        return key

    def _create_key(self) -> bytes:
        with self._lock:
            if existing := self._read_key():
                return existing
            if self._used():
                cause = f"the key file {FILE} is missing, but stored secrets are encrypted with it"
                raise Failure(UNREADABLE, f"{cause}; restore it from a backup, or drop these secrets first")
            key = os.urandom(_BYTES)
            if self._file is None:
                self._key = key
                return key
            try:
                _write_key(self._file, key)
            except FileExistsError:
                # Another process has created it.
                return self._read_key()
            except OSError as error:
                raise Failure(UNREADABLE, f"cannot write the key file {FILE}: {reason(error)}") from None
            return key


def _write_key(file: Path, key: bytes) -> None:
    """Write the key atomically, also across a loss of power. Raises FileExistsError if there is a key."""
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{FILE}-") as temporary:
        temporary.write(base64.b64encode(key) + b"\n")
        temporary.flush()
        os.fsync(temporary.fileno())
        os.link(temporary.name, file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _decrypt(key: bytes, owner: list[str], text: str) -> dict[str, str]:
    # Loading it takes tens of milliseconds, and few services use secrets.
    from cryptography.fernet import Fernet, InvalidToken

    try:
        *sealed_for, values = json.loads(Fernet(base64.urlsafe_b64encode(key)).decrypt(text))
    except (InvalidToken, ValueError):
        raise Failure(UNREADABLE, _DAMAGED) from None
    if sealed_for != owner:
        raise Failure(UNREADABLE, "its stored value belongs to another object")
    return dict[str, str](values)


def _decrypt_aes_gcm(key: bytes, owner: list[str], text: str) -> dict[str, str]:
    """Decrypt what versions up to 0.1 stored: AES-256-GCM after a nonce of 12 bytes."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        sealed = base64.b64decode(text, validate=True)
        values: Any = json.loads(AESGCM(key).decrypt(sealed[:12], sealed[12:], json.dumps(owner).encode()))
    except (InvalidTag, ValueError):
        raise Failure(UNREADABLE, f"{_DAMAGED}, or belongs to another object") from None
    return dict[str, str](values)
