"""Records: journal, result history, records of a run (transcripts, statistics), saved queries, `--resume`."""
