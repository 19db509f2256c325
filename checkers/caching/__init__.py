"""Verdicts kept by content: what nothing has changed of is not decided again."""
