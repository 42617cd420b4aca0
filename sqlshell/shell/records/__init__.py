"""Records: journal, result history, transcripts, saved queries, statistics of runs, checkpoints of `--resume`."""
