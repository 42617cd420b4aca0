"""Editing at the prompt: keys, completion menu, continuation lines, the formatter."""
