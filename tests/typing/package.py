"""Uses of the root package, read by the type checkers alone."""

from routeproof import __version__

version: str = __version__
