"""The array functions that the kernels use: those that NumPy and CuPy both have, and no others.

Kernels are written against `Namespace`, so that a type checker refuses a function that is not
declared here, and a test looks up every declared one in each library that is installed. Types are
given as strings (`"float32"`), which both libraries take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Array", "Namespace"]

Array = NDArray[Any]
"""An array of either library: what is used of it is what both have."""


class Namespace(Protocol):
    """The functions, with the meaning that NumPy gives them."""

    def asarray(self, values: object, dtype: str | None = None) -> Array:
        """The values as an array on the device."""

    def ascontiguousarray(self, values: Array, dtype: str | None = None) -> Array:
        """The values in C order, copied where they are not."""

    def zeros(self, shape: Sequence[int] | int, dtype: str) -> Array:
        """Zeros of the shape."""

    def full(self, shape: Sequence[int] | int, value: float, dtype: str) -> Array:
        """One value in every place."""

    def arange(self, start: int, stop: int, *, dtype: str) -> Array:
        """The integers from `start` to below `stop`."""

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """The parts along a new axis."""

    def concatenate(self, parts: Sequence[Array], axis: int) -> Array:
        """The parts behind each other."""

    def repeat(self, values: Array, count: int, axis: int) -> Array:
        """Every element that many times."""

    def take(self, values: Array, places: Array) -> Array:
        """The elements of a vector at the places."""

    def matmul(self, one: Array, two: Array) -> Array:
        """The matrix product over the last two axes."""

    def where(self, condition: Array, one: Any, two: Any) -> Array:  # noqa: ANN401 - a number too
        """`one` where the condition holds, else `two`."""

    def searchsorted(self, ascending: Array, values: Array) -> Array:
        """How many elements lie below each value."""

    def maximum(self, one: Array, two: Any) -> Array:  # noqa: ANN401 - a number too
        """The larger of two, element by element."""

    def minimum(self, one: Array, two: Any) -> Array:  # noqa: ANN401 - a number too
        """The smaller of two, element by element."""

    def abs(self, values: Array) -> Array:
        """Magnitudes."""

    def exp(self, values: Array) -> Array:
        """Exponentials."""

    def log(self, values: Array) -> Array:
        """Natural logarithms."""

    def tanh(self, values: Array) -> Array:
        """Hyperbolic tangents."""

    def sqrt(self, values: Array) -> Array:
        """Square roots."""

    def rint(self, values: Array) -> Array:
        """The nearest integers, halves to even."""

    def isnan(self, values: Array) -> Array:
        """Whether an element is no number."""

    def signbit(self, values: Array) -> Array:
        """Whether an element is negative, -0.0 included."""
