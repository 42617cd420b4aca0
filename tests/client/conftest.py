"""An authority of our own, for tests over TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and certificates of it for 127.0.0.1 and for a client."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*argv: str) -> None:
        subprocess.run(["openssl", *argv], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name, extension in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "subjectAltName=DNS:client")):
        (folder / f"{name}.ext").write_text(extension)
        openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x"
        )
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return folder
