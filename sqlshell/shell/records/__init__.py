"""What is remembered: journal, result history, transcripts, saved queries."""
