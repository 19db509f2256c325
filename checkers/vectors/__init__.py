"""Boundary-value test vectors of modelled functions, for tests in any language.

Nothing here proves anything: vectors are examples, and a side of an edge without one may have one.
"""

from .bases import looked_up
from .boundary import Vector, Vectors, boundary_vectors
from .writing import run_vectors

__all__ = ["Vector", "Vectors", "boundary_vectors", "looked_up", "run_vectors"]
