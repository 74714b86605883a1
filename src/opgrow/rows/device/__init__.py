"""Rows on a GPU, or streamed through it."""
