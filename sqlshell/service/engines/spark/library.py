"""pyspark's client: the messages of the protocol, and its rules for URLs. Nothing else imports it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _with_file() -> Iterator[None]:
    """pyspark takes a main module without a file, as in python -c, for a run of its doctests, and ends the process."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = ""
    try:
        yield
    finally:
        del main.__file__


with _with_file():
    from pyspark.errors import PySparkException
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

__all__ = ["DefaultChannelBuilder", "PySparkException", "SparkConnectServiceStub", "proto"]
