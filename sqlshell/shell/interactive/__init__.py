"""The prompt: the input loop, history, the editor, the terminal."""
