"""Several processes of one service, which share their records in PostgreSQL."""
