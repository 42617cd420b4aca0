"""The shell itself: one path for the prompt, `-c`, `-f` and stdin."""
