"""Reading results: partitions, the data plane, streams."""
