"""What a statement is and does: its tokens, its kind, whether it writes, the files and secrets that it names."""
