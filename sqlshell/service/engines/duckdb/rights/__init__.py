"""What a statement may do under `serve`: types of statements, words, and the functions that SQL may call."""
