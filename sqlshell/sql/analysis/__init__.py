"""Analysis of statements: tokens, kind, whether they write and may be sent, files and secrets."""
