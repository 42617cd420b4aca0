"""Several processes of one service, which share their records in PostgreSQL."""

PEER_PATH = "/v2/peer"
"""The path at which a process proves to another one which process it is."""
