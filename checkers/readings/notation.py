# ruff: noqa: N802 - SymPy's printers dispatch on the names of its classes
"""Formulas as people write them: one line of Unicode text, or LaTeX with words for names."""

from __future__ import annotations

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from routeproof.spec.terms import Op

from .formula import FloatEq, Formula, Is

__all__ = ["latex", "latex_name", "text"]

_SIGNS = {
    "Equality": ("=", "="),
    "Unequality": ("≠", r"\neq"),
    "StrictLessThan": ("<", "<"),
    "LessThan": ("≤", r"\leq"),
    "StrictGreaterThan": (">", ">"),
    "GreaterThan": ("≥", r"\geq"),
    "Is": ("=", "="),
    "FloatEq": ("=", "="),
    "FloatLt": ("<", "<"),
    "FloatLe": ("≤", r"\leq"),
}
_UNEQUAL = _SIGNS["Unequality"]


class _Text(StrPrinter):  # type: ignore[misc]
    """One line of mathematics in Unicode; SymPy calls the method that bears a class's name."""

    def _related(self, expr: Formula, sign: str) -> str:
        above = PRECEDENCE["Relational"] + 1
        return f" {sign} ".join(self.parenthesize(arg, above) for arg in expr.args)

    def _print_Relational(self, expr: Formula) -> str:
        turned = _turned(expr)
        return self._related(turned, _SIGNS[type(turned).__name__][0])

    def _print_Predicate(self, expr: Formula) -> str:
        return self._related(expr, _SIGNS[type(expr).__name__][0])

    def _print_Not(self, expr: Formula) -> str:
        if isinstance(expr.args[0], Is | FloatEq):
            return self._related(expr.args[0], _UNEQUAL[0])
        return f"not {self.parenthesize(expr.args[0], PRECEDENCE['Not'])}"

    def _print_And(self, expr: Formula) -> str:
        return " and ".join(self.parenthesize(arg, PRECEDENCE["And"]) for arg in expr.args)

    def _print_Or(self, expr: Formula) -> str:
        return " or ".join(self.parenthesize(arg, PRECEDENCE["Or"]) for arg in expr.args)

    def _print_Equivalent(self, expr: Formula) -> str:
        return " ⇔ ".join(self.parenthesize(arg, PRECEDENCE["Or"]) for arg in expr.args)

    def _print_floor(self, expr: Formula) -> str:
        return f"⌊{self._ratio(*_fraction(expr))}⌋"

    def _print_ceiling(self, expr: Formula) -> str:
        return f"⌈{self._ratio(*_fraction(expr))}⌉"

    def _ratio(self, above: Formula, below: Formula) -> str:
        if below == 1:
            return str(self._print(above))
        strength = PRECEDENCE["Mul"]
        left = self.parenthesize(above, strength, strict=True)
        return f"{left}/{self.parenthesize(below, strength)}"

    def _print_Mod(self, expr: Formula) -> str:
        return f"({' mod '.join(self.parenthesize(arg, PRECEDENCE['Mul']) for arg in expr.args)})"

    def _print_Min(self, expr: Formula) -> str:
        return f"min({', '.join(map(self._print, expr.args))})"

    def _print_Max(self, expr: Formula) -> str:
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_Piecewise(self, expr: Formula) -> str:
        *cases, last = expr.args
        lines = [f"{self._print(one)} if {self._print(test)}; " for one, test in cases]
        return f"{{{''.join(lines)}else {self._print(last.args[0])}}}"

    def _print_AppliedUndef(self, expr: Formula) -> str:
        if expr.func.__name__ not in (Op.FIRST, Op.GREATEST):
            return str(self._print_Function(expr))
        variable, *bodies, limit, at_most, start = map(self._print, expr.args)
        where = f"{variable} in 1..min({limit}, {at_most})"
        return f"{expr.func.__name__}({where}: {': '.join(bodies)}; else {start})"

    def _print_Dummy(self, expr: Formula) -> str:
        return str(expr.name)

    def _print_Str(self, expr: Formula) -> str:
        return str(expr.name)


class _Latex(LatexPrinter):  # type: ignore[misc]
    """LaTeX in which names are words, not products of letters."""

    def _print_Relational(self, expr: Formula) -> str:
        return str(super()._print_Relational(_turned(expr)))

    def _print_Predicate(self, expr: Formula) -> str:
        return f" {_SIGNS[type(expr).__name__][1]} ".join(map(self._print, expr.args))

    def _print_Not(self, expr: Formula) -> str:
        if isinstance(expr.args[0], Is | FloatEq):
            return f" {_UNEQUAL[1]} ".join(map(self._print, expr.args[0].args))
        return rf"\neg \left({self._print(expr.args[0])}\right)"

    def _print_And(self, expr: Formula) -> str:
        return r" \wedge ".join(self.parenthesize(arg, PRECEDENCE["And"]) for arg in expr.args)

    def _print_Or(self, expr: Formula) -> str:
        return r" \vee ".join(self.parenthesize(arg, PRECEDENCE["Or"]) for arg in expr.args)

    def _print_floor(self, expr: Formula) -> str:
        return rf"\left\lfloor {self._ratio(*_fraction(expr))} \right\rfloor"

    def _print_ceiling(self, expr: Formula) -> str:
        return rf"\left\lceil {self._ratio(*_fraction(expr))} \right\rceil"

    def _ratio(self, above: Formula, below: Formula) -> str:
        if below == 1:
            return str(self._print(above))
        return rf"\frac{{{self._print(above)}}}{{{self._print(below)}}}"

    def _print_Symbol(self, expr: Formula) -> str:
        return latex_name(expr.name)

    def _print_Str(self, expr: Formula) -> str:
        return rf"\mathrm{{{expr.name}}}".replace("_", r"\_")


def _fraction(expr: Formula) -> tuple[Formula, Formula]:
    """The argument of a rounding as numerator and denominator."""
    (arg,) = expr.args
    above, below = sympy.fraction(arg) if arg.has(sympy.Piecewise) else arg.as_numer_denom()
    return above, below


def _turned(relation: Formula) -> Formula:
    """The relation with a constant on the right."""
    return relation.reversed if relation.lhs.is_number else relation


def text(formula: Formula) -> str:
    """The expression on one line."""
    return str(_Text().doprint(formula))


def latex(formula: Formula) -> str:
    """The expression in LaTeX."""
    return str(_Latex().doprint(formula))


def latex_name(name: str) -> str:
    """A symbol's name in LaTeX: a word, or a letter with an index."""
    if name[1:].isdecimal():
        return f"{name[0]}_{{{name[1:]}}}"
    return name if len(name) == 1 else rf"\mathit{{{name}}}".replace("_", r"\_")
