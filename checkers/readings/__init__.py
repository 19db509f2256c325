"""The readings of a term: what each engine sees of the one definition."""
