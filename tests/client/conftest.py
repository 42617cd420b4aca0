"""An authority of our own, for tests over TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and certificates of it for 127.0.0.1 and for a client.

    They say what their keys are for and whose they are (RFC 5280): Python 3.13 and newer refuse those that do not.
    """
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*argv: str) -> None:
        subprocess.run(["openssl", *argv], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    signs = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(*new, *signs, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name, purpose in (("server", "IP:127.0.0.1"), ("client", "DNS:client")):
        (folder / f"{name}.ext").write_text(
            f"subjectAltName={purpose}\nextendedKeyUsage={name}Auth\nkeyUsage=critical,digitalSignature,keyEncipherment\n"
            "basicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        )
        openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x"
        )
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return folder
