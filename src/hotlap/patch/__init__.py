"""Edits as data become source: plain PyTorch, comments and formatting kept. Uses libcst, imported when it is needed."""
