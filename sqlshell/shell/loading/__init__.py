"""Files loaded into tables: reading, converting and checking, sending in batches, resuming."""
