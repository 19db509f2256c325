"""Bound obligations: the portfolio against z3 and cvc5 alone, each given the exact query."""
