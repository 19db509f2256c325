"""Proofs and counterexamples for kernel dispatch ladders and scratch-memory bounds.

Read on in `routeproof.proofs` (what is claimed), `routeproof.models` (of what), `routeproof.spec`
(in which words) and `routeproof.checkers` (how it is decided). Importing this package loads none
of them.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
