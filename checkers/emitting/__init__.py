"""Terms as source text."""
