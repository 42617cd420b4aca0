"""Records: journal, result history, transcripts, saved queries."""
