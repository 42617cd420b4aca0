"""URLs of Spark Connect servers, and the connection."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sqlshell.errors import ServiceError, UsageError
from tests.service.spark import needs_sail, needs_spark

pytestmark = needs_spark

TOKEN = "se:cret-0123"


@pytest.mark.parametrize(
    ("url", "endpoint", "secure"),
    [
        ("sc://host", "host:15002", False),
        ("sc://host:1", "host:1", False),
        ("SC://host:1/", "host:1", False),
        ("sc://host:1;user_id=me", "host:1", False),
        (f"sc://host:1;token={TOKEN}", "host:1", True),
        (f"sc://host/;token={TOKEN};use_ssl=false", "host:15002", True),
        ("sc://host/;use_ssl=true;x-header=a%20b", "host:15002", True),
        (f"sc://[::1]:1;token={TOKEN}", "[::1]:1", True),
    ],
)
def test_urls_follow_pysparks_rules(url: str, endpoint: str, secure: bool) -> None:
    from sqlshell.service.engines.spark.client import Address

    address = Address(url)
    assert (address.endpoint, address.secure) == (endpoint, secure)
    assert TOKEN not in repr(address)
    assert not any(TOKEN in value for _, value in address.metadata)


@pytest.mark.parametrize(
    "url",
    [
        *("http://host", "sc://", "sc://host:port", "sc://host/path", "sc://host:1;token", f"sc://me:{TOKEN}@host"),
        f"sc://host:1/path;token={TOKEN}",
        f"sc://;token={TOKEN}",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_token(url: str) -> None:
    from sqlshell.service.engines.spark.client import Address

    with pytest.raises(UsageError) as raised:
        Address(url)
    assert TOKEN not in f"{raised.value} {raised.value.hint}"
    assert "sc://" in (raised.value.hint or "")


def test_an_unknown_host_is_told() -> None:
    from sqlshell.service.engines.spark.engine import SparkEngine

    with pytest.raises(ServiceError, match=r"cannot reach the Spark Connect server at nowhere\.invalid:15002"):
        SparkEngine("sc://nowhere.invalid")


@needs_sail
def test_a_token_is_not_sent_without_tls(spark_url: str) -> None:
    from sqlshell.service.engines.spark.engine import SparkEngine

    with pytest.raises(ServiceError) as raised:
        SparkEngine(f"{spark_url};token={TOKEN}")
    assert TOKEN not in str(raised.value)
    assert "TLS" in str(raised.value)


@needs_sail
def test_a_token_is_sent_to_this_machine(spark_url: str) -> None:
    from sqlshell.service.engines.spark.engine import SparkEngine

    engine = SparkEngine(f"{spark_url.replace('127.0.0.1', 'localhost')};token={TOKEN}")
    assert engine.connect().database
    engine.close()


def test_a_program_without_a_file_may_connect(spark_url: str) -> None:
    """pyspark ends a process whose main module has no file."""
    code = "import sys; from sqlshell.service.engines.spark.engine import SparkEngine as E; print(E(sys.argv[1]).name)"
    done: Any = subprocess.run([sys.executable, "-c", code, spark_url], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "spark\n"), done.stderr
