"""Several processes of one service, with their records in PostgreSQL: leases by its clock, and sessions."""
