"""What a statement is and does: its tokens, its kind, whether it writes and may be sent, its files and secrets."""
