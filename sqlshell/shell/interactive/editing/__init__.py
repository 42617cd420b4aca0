"""Editing at the prompt: keys, drawing, suggestions, completion menu, continuation lines, the formatter."""
