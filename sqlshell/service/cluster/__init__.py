"""Several processes of one service, which share their records in PostgreSQL: leases by its clock, sessions and slots."""
