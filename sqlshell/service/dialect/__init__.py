"""The language in which forms of statements are written, their tokens, and the statements that are not supported."""
