"""Several processes of one service, which share their records in PostgreSQL."""

PEER_PATH = "/v2/peer"
"""The path at which a process proves its identity to other processes."""
