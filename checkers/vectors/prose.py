"""What the generated files say in words."""

from __future__ import annotations

import re

from .boundary import Vectors
from .shapes import Shapes

__all__ = ["ascii_text", "heading", "plain_name"]


def ascii_text(text: str) -> str:
    """One line of plain characters, safe in any comment and string."""
    plain = " ".join(text.encode("ascii", "replace").decode().split())
    return plain.replace("??", "? ?").replace("\\", "/")


def plain_name(found: Vectors) -> str:
    """The function's name as an identifier."""
    return re.sub(r"\W", "_", found.function.name, flags=re.ASCII)


def heading(found: Vectors, shapes: Shapes, mark: str) -> str:
    """The comment at the top of a file."""
    function = found.function
    lines = [
        f"Boundary-value vectors of {function.name}: {function.summary}.",
        f"Modelled from {function.source}.",
        "",
        f"{len(shapes.vectors)} examples next to the edges of the function, with the outputs that",
        "its model gives. They are tests, not a proof; the edges without a vector are listed by",
        "the JSON form.",
    ]
    if shapes.left_out:
        lines.append(f"Left out are {shapes.left_out} with an integer beyond 64 bits.")
    return "\n".join(f"{mark} {ascii_text(line)}".rstrip() for line in lines)
