"""Engines that speak Spark Connect: Apache Spark and Sail."""

import os
from typing import Final

from sqlshell.service.engines.engine import Capabilities

CAPABILITIES: Final = Capabilities(cancel=True, typed_results=True, reattaching=True)
"""Without progress, which a server has once it reports some."""

# gRPC reads its settings when it is imported, which any module here may be the first to do.
# gRPC would write to stderr, also the causes of failed connections, which the errors contain.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# Its fork handlers start its threads in every child, where they can crash before the child runs its program. No channel
# is used on both sides of a fork.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
