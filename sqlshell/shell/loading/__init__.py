"""Files loaded into tables: reading and converting, sending in batches, resuming."""
