"""Terms: the typed expressions a model is written in, once, and that every reading interprets.

Terms are immutable and hash-consed (equal structure is the same object), so they can be compared
with `is` and used as dictionary keys; `==` builds a `Bool` term. Every operation is total:
`x // 0 == 0`, `x % 0 == x` and `ceil_div(x, 0) == 0`, so that no reading needs an order of
evaluation, and floats follow IEEE 754 with round-to-nearest-even.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar, Literal, NoReturn, TypeVar, cast, overload
from weakref import ref

from .errors import ModelError

__all__ = [
    "FALSE",
    "SEARCHES",
    "TRUE",
    "Bool",
    "Enum",
    "EnumSort",
    "Float",
    "FloatValue",
    "Int",
    "IntDomain",
    "Op",
    "Term",
    "Width",
    "align_up",
    "all_of",
    "any_of",
    "boolean",
    "ceil_div",
    "ceiling",
    "constant",
    "first",
    "float32",
    "float64",
    "free_symbols",
    "greatest",
    "implies",
    "integer",
    "ite",
    "maximum",
    "minimum",
    "rebuild",
    "rename_bound",
    "saturate",
    "set_place",
    "show_range",
    "substitute",
    "symbol_bool",
    "symbol_enum",
    "symbol_float",
    "symbol_int",
    "symbols_among",
    "to_float",
    "topological",
    "widen",
    "wrap_signed",
    "wrap_unsigned",
]

Width = Literal[32, 64]


class Op(StrEnum):
    """Every kind of node; a reading has one entry per kind and fails loudly on a missing one."""

    SYMBOL = "symbol"
    BOUND = "bound"
    CONST = "const"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    FLOOR_DIV = "floor_div"
    CEIL_DIV = "ceil_div"
    MOD = "mod"
    ALIGN_UP = "align_up"
    MIN = "min"
    MAX = "max"
    ITE = "ite"
    EQ = "eq"
    LT = "lt"
    LE = "le"
    NOT = "not"
    AND = "and"
    OR = "or"
    TO_FLOAT = "to_float"
    WIDEN = "widen"
    FLOAT_MUL = "float_mul"
    FLOAT_DIV = "float_div"
    CEILING = "ceiling"
    FIRST = "first"
    GREATEST = "greatest"


SEARCHES = frozenset({Op.FIRST, Op.GREATEST})
"""The nodes that bind a variable: their arguments are limit, variable, bodies, fallback."""


@dataclass(frozen=True, slots=True)
class IntDomain:
    """The integers lo..hi (None: unbounded on that side) that are multiples of `multiple_of`."""

    lo: int | None = None
    hi: int | None = None
    multiple_of: int = 1

    def __post_init__(self) -> None:
        """Refuse a domain without a member: it would make every claim vacuously true."""
        given: tuple[object, ...] = (self.lo, self.hi, self.multiple_of)
        for bound in given:
            if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool)):
                raise ModelError(f"a bound of a domain is an int, got {bound!r}")
        for name, bound in zip(("lo", "hi", "multiple_of"), given, strict=True):
            if isinstance(bound, int):  # a kind of its own could show another number than it is
                object.__setattr__(self, name, int(bound))
        if self.multiple_of < 1:
            raise ModelError(f"multiple_of must be positive, got {self.multiple_of}")
        if self.lo is not None and self.hi is not None and self.rest > self.hi:
            raise ModelError(f"empty domain {self}")

    def __contains__(self, value: int) -> bool:
        """Whether the domain admits `value`."""
        low = self.lo is None or value >= self.lo
        return low and (self.hi is None or value <= self.hi) and value % self.multiple_of == 0

    @property
    def rest(self) -> int:
        """The value a minimised counterexample moves towards: the low end, or 0 below int32."""
        lo = 0 if self.lo is None or self.lo <= -(2**31) else self.lo
        if self.hi is not None and lo > self.hi:
            if self.lo is None:
                return self.hi // self.multiple_of * self.multiple_of
            lo = self.lo
        return -(-lo // self.multiple_of) * self.multiple_of

    def __str__(self) -> str:
        """Readable range, for messages and proof axes."""
        every = f", multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{show_range(self.lo, self.hi)}{every}"


def show_range(lo: int | None, hi: int | None) -> str:
    """Both ends as people write them: machine limits as powers of two, None as infinite."""
    return f"{'-oo' if lo is None else _limit(lo)}..{'oo' if hi is None else _limit(hi)}"


def _limit(value: int) -> str:
    for offset in (0, 1):
        power = abs(value) + offset
        if power >= 2**31 and power.bit_count() == 1:
            sign, less = ("-", "+") if value < 0 else ("", "-")
            return f"{sign}2^{power.bit_length() - 1}{f'{less}{offset}' if offset else ''}"
    return str(value)


_MOST_MEMBERS = 127


@dataclass(frozen=True, slots=True)
class EnumSort:
    """A finite set of named members; the first is the one a minimised counterexample prefers."""

    name: str
    members: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a sort without members, and members that cannot be told apart."""
        given: object = self.members
        if not isinstance(given, tuple) or not given:
            raise ModelError(f"{self.name}: members are a tuple of names, got {self.members!r}")
        object.__setattr__(self, "name", _named(self.name))
        object.__setattr__(self, "members", tuple(map(_named, given)))
        if len(set(self.members)) < len(self.members):
            raise ModelError(f"{self.name}: a member is given twice: {', '.join(self.members)}")
        if len(self.members) > _MOST_MEMBERS:
            raise ModelError(f"{self.name}: {len(self.members)} members, at most {_MOST_MEMBERS}")

    def __getitem__(self, member: str) -> Enum:
        """The constant term for `member`."""
        if member not in self.members:
            members = ", ".join(self.members)
            raise ModelError(f"{self.name} has no member {member!r}; members: {members}")
        return _intern(Enum, Op.CONST, (), member, self)


@dataclass(frozen=True, slots=True)
class FloatValue:
    """A float constant with its width; bits, not `==`, decide identity (NaN, -0.0)."""

    bits: bytes

    @property
    def number(self) -> float:
        """The Python float with the same value."""
        return cast("float", struct.unpack(">f" if len(self.bits) == 4 else ">d", self.bits)[0])


Sort = EnumSort | Width | None
_Key = tuple[Hashable, ...]
_serial = itertools.count(1)


class Term:
    """One node: its kind, its arguments, a payload (symbol name, constant, cap) and its sort."""

    __slots__ = ("__weakref__", "args", "bound", "domain", "op", "place", "serial", "sort", "value")

    op: Op
    args: tuple[Term, ...]
    value: Hashable
    sort: Sort
    domain: IntDomain | None
    bound: frozenset[Term]
    serial: int
    place: int | None
    sort_name: ClassVar[str] = "term"

    # By identity, hence distinct for live terms: dictionaries never fall back to `==`. The order of
    # a set of terms differs from run to run, so sets are for membership alone.
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        """Terms have no truth value while a model is being written."""
        raise ModelError("a term has no truth value: use ite(), &, |, ~ instead of if/and/or/not")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Terms are immutable."""
        raise ModelError(f"terms are immutable: cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        """Terms are immutable."""
        raise ModelError(f"terms are immutable: cannot delete {name}")

    def __reduce__(self) -> tuple[Callable[..., Term], tuple[object, ...]]:
        """Copies and pickles are interned again: a copy is the same object."""
        return _intern, (type(self), self.op, self.args, self.value, self.sort, self.domain)

    def __deepcopy__(self, memo: object) -> Term:
        """Terms are immutable: a copy is the same object."""
        return self

    def __repr__(self) -> str:
        """Readable infix text (shared parts are repeated)."""
        from .text import render  # noqa: PLC0415 - text reads terms; only a repr needs it back

        return render(self)

    @property
    def name(self) -> str:
        """The name of a symbol or a bound variable."""
        if self.op not in (Op.SYMBOL, Op.BOUND):
            raise ModelError(f"only symbols have a name, this is {self.op}")
        return str(self.value)


T = TypeVar("T", bound=Term)


def _forget(key: _Key, dead: ref[Term]) -> None:
    if _interned.get(key) is dead:
        del _interned[key]


_interned: dict[_Key, ref[Term]] = {}

# A field is set through its slot: a term's own __setattr__ refuses.
_SETTERS: tuple[Callable[[Term, object], None], ...] = tuple(
    Term.__dict__[field].__set__
    for field in ("op", "args", "value", "sort", "domain", "serial", "place", "bound")
)
_CLOSED = frozenset[Term]()


def _intern(  # noqa: PLR0913, PLR0917 - the fields of a node
    cls: type[T],
    op: Op,
    args: tuple[Term, ...],
    value: Hashable = None,
    sort: Sort = None,
    domain: IntDomain | None = None,
) -> T:
    key = (cls.sort_name, op, value, sort, domain, *[arg.serial for arg in args])
    known = _interned.get(key)
    if known is not None and (found := known()) is not None:
        return cast("T", found)
    term = object.__new__(cls)
    fields = (op, args, value, sort, domain, next(_serial), None, _free(op, args))
    for setter, content in zip(_SETTERS, fields, strict=True):
        setter(term, content)
    if op is Op.BOUND:
        _SETTERS[-1](term, frozenset({term}))
    _interned[key] = ref(term, partial(_forget, key))
    return term


def _free(op: Op, args: tuple[Term, ...]) -> frozenset[Term]:
    """The bound variables that occur free; a search binds its own in its body."""
    bound = _CLOSED
    for arg in args:
        if arg.bound:
            bound |= arg.bound
    return bound - {args[1]} if op in SEARCHES else bound


class Bool(Term):
    """A truth value; `&`, `|`, `~`, `==` (iff) and `!=` (xor) build new ones."""

    __slots__ = ()
    sort_name = "bool"
    __hash__ = Term.__hash__

    def __and__(self, other: Bool | bool) -> Bool:
        """Conjunction."""
        return all_of(self, boolean(other))

    def __or__(self, other: Bool | bool) -> Bool:
        """Disjunction."""
        return any_of(self, boolean(other))

    def __invert__(self) -> Bool:
        """Negation."""
        if self.op is Op.CONST:
            return FALSE if self.value else TRUE
        return cast("Bool", self.args[0]) if self.op is Op.NOT else _intern(Bool, Op.NOT, (self,))

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        """Equivalence."""
        right = boolean(other)
        if self is right:
            return TRUE
        for one, two in ((self, right), (right, self)):
            if one.op is Op.CONST:
                return two if one.value else ~two
        return _intern(Bool, Op.EQ, (self, right))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        """Exclusive or."""
        return ~(self == other)


class Int(Term):
    """An exact mathematical integer; overflow is a predicate of its own (`spec.recipe`)."""

    __slots__ = ()
    sort_name = "int"
    __hash__ = Term.__hash__

    def __add__(self, other: Int | int) -> Int:
        """Exact sum."""
        return _arith(Op.ADD, self, integer(other))

    def __radd__(self, other: int) -> Int:
        """Exact sum."""
        return _arith(Op.ADD, integer(other), self)

    def __sub__(self, other: Int | int) -> Int:
        """Exact difference."""
        return _arith(Op.SUB, self, integer(other))

    def __rsub__(self, other: int) -> Int:
        """Exact difference."""
        return _arith(Op.SUB, integer(other), self)

    def __neg__(self) -> Int:
        """Exact negation."""
        return _arith(Op.SUB, integer(0), self)

    def __mul__(self, other: Int | int) -> Int:
        """Exact product."""
        return _arith(Op.MUL, self, integer(other))

    def __rmul__(self, other: int) -> Int:
        """Exact product."""
        return _arith(Op.MUL, integer(other), self)

    def __floordiv__(self, other: Int | int) -> Int:
        """Quotient rounded towards minus infinity; 0 for a zero divisor."""
        return _arith(Op.FLOOR_DIV, self, integer(other))

    def __rfloordiv__(self, other: int) -> Int:
        """Quotient rounded towards minus infinity; 0 for a zero divisor."""
        return _arith(Op.FLOOR_DIV, integer(other), self)

    def __mod__(self, other: Int | int) -> Int:
        """`x - d * (x // d)`; x for a zero divisor."""
        return _arith(Op.MOD, self, integer(other))

    def __rmod__(self, other: int) -> Int:
        """`x - d * (x // d)`; x for a zero divisor."""
        return _arith(Op.MOD, integer(other), self)

    def __lt__(self, other: Int | int) -> Bool:
        """Less than."""
        return _compare(Op.LT, self, integer(other))

    def __le__(self, other: Int | int) -> Bool:
        """At most."""
        return _compare(Op.LE, self, integer(other))

    def __gt__(self, other: Int | int) -> Bool:
        """Greater than."""
        return _compare(Op.LT, integer(other), self)

    def __ge__(self, other: Int | int) -> Bool:
        """At least."""
        return _compare(Op.LE, integer(other), self)

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        """Equality, as a term."""
        return _compare(Op.EQ, self, integer(other))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        """Inequality, as a term."""
        return ~(self == other)

    def __and__(self, other: object) -> NoReturn:
        """Refuse `a <= 1 & b`, which Python reads as `a <= (1 & b)`."""
        raise ModelError("integers have no & and |: write (a <= 1) & (b <= 2), with parentheses")

    __rand__ = __or__ = __ror__ = __and__

    def __truediv__(self, other: object) -> NoReturn:
        """Refuse a division that would not be an integer."""
        raise ModelError("write // to round down, or ceil_div()")

    __rtruediv__ = __truediv__

    def is_in(self, *values: int) -> Bool:
        """Whether it is one of `values`."""
        return any_of(*(self == value for value in values))


class Enum(Term):
    """A member of an `EnumSort`; compares with members by name."""

    __slots__ = ()
    sort_name = "enum"
    __hash__ = Term.__hash__

    @property
    def members(self) -> EnumSort:
        """The sort."""
        return cast("EnumSort", self.sort)

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        """Whether it is the member (a name) or equals the other term of the same sort."""
        right = self.members[other] if isinstance(other, str) else other
        if not isinstance(right, Enum) or right.sort != self.sort:
            raise ModelError(f"cannot compare {self.members.name} with {other!r}")
        if self is right:
            return TRUE
        if self.op is Op.CONST and right.op is Op.CONST:
            return FALSE
        return _intern(Bool, Op.EQ, (right, self) if self.op is Op.CONST else (self, right))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        """Negated equality."""
        return ~(self == other)

    def is_in(self, *members: str) -> Bool:
        """Whether it is one of the named members."""
        return any_of(*(self == member for member in members))


class Float(Term):
    """An IEEE float of width 32 or 64; widths never mix implicitly."""

    __slots__ = ()
    sort_name = "float"
    __hash__ = Term.__hash__

    @property
    def width(self) -> Width:
        """32 or 64."""
        return cast("Width", self.sort)

    def _same(self, other: object) -> Float:
        if not isinstance(other, Float) or other.width != self.width:
            raise ModelError(f"float{self.width} meets {other!r}: write the width, or widen()")
        return other

    def __mul__(self, other: Float) -> Float:
        """Product, rounded to the width."""
        return _intern(Float, Op.FLOAT_MUL, (self, self._same(other)), None, self.width)

    def __truediv__(self, other: Float) -> Float:
        """Quotient, rounded to the width; x/0 is an infinity or NaN."""
        return _intern(Float, Op.FLOAT_DIV, (self, self._same(other)), None, self.width)

    def __lt__(self, other: Float) -> Bool:
        """IEEE less than: false when either side is NaN."""
        return _intern(Bool, Op.LT, (self, self._same(other)))

    def __le__(self, other: Float) -> Bool:
        """IEEE at most: false when either side is NaN."""
        return _intern(Bool, Op.LE, (self, self._same(other)))

    def __gt__(self, other: Float) -> Bool:
        """IEEE greater than."""
        return _intern(Bool, Op.LT, (self._same(other), self))

    def __ge__(self, other: Float) -> Bool:
        """IEEE at least."""
        return _intern(Bool, Op.LE, (self._same(other), self))

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        """IEEE equality: NaN differs from itself, -0.0 equals 0.0."""
        return _intern(Bool, Op.EQ, (self, self._same(other)))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        """Negated IEEE equality: true for NaN."""
        return ~(self == other)


def boolean(value: object) -> Bool:
    """The Bool term for a Python bool (terms pass through)."""
    if isinstance(value, Bool):
        return value
    if isinstance(value, bool):
        return TRUE if value else FALSE
    raise ModelError(f"expected a bool or Bool term, got {value!r}")


def integer(value: object) -> Int:
    """The Int term for a Python int (terms pass through; bools are refused)."""
    if isinstance(value, Int):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _intern(Int, Op.CONST, (), int(value))
    raise ModelError(f"expected an int or Int term, got {value!r}")


TRUE: Bool = _intern(Bool, Op.CONST, (), True)
FALSE: Bool = _intern(Bool, Op.CONST, (), False)


def float32(value: float) -> Float:
    """A float32 constant: `value` rounded once, like a literal with an `f` suffix in C."""
    return _float(value, 32)


def float64(value: float) -> Float:
    """A float64 constant, like an unsuffixed literal in C."""
    return _float(value, 64)


def _float(value: float, width: Width) -> Float:
    try:
        bits = struct.pack(">f" if width == 32 else ">d", float(value))
    except OverflowError as error:
        raise ModelError(f"{value} is beyond float{width}: is math.inf meant?") from error
    return _intern(Float, Op.CONST, (), FloatValue(bits), width)


def _named(name: object) -> str:
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ModelError(f"{name!r} cannot name a symbol: a printable text can")
    return str.__str__(name)  # a kind of its own could show another text than it is


def _width(width: Width) -> Width:
    if width not in (32, 64) or isinstance(width, float):
        raise ModelError(f"floats have 32 or 64 bits, not {width!r}")
    return width


def constant(symbol: Term, value: float | str) -> Term:
    """The constant of the symbol's sort with the value."""
    if isinstance(symbol, Bool):
        return boolean(value)
    if isinstance(symbol, Int):
        return integer(cast("int", value))
    if isinstance(symbol.sort, EnumSort):
        return symbol.sort[str(value)]
    return (float32 if symbol.sort == 32 else float64)(float(value))


def symbol_int(name: str, domain: IntDomain | None = None) -> Int:
    """An integer variable."""
    if domain is not None and not isinstance(domain, IntDomain):
        raise ModelError(f"the domain of {name!r} is {domain!r}, not an IntDomain")
    return _intern(Int, Op.SYMBOL, (), _named(name), None, domain or IntDomain())


def symbol_bool(name: str) -> Bool:
    """A boolean variable."""
    return _intern(Bool, Op.SYMBOL, (), _named(name))


def symbol_enum(name: str, sort: EnumSort) -> Enum:
    """A variable over the members of `sort`."""
    return _intern(Enum, Op.SYMBOL, (), _named(name), sort)


def symbol_float(name: str, width: Width) -> Float:
    """A float variable; NaN, infinities and -0.0 are in its domain."""
    return _intern(Float, Op.SYMBOL, (), _named(name), _width(width))


_FOLD: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOOR_DIV: lambda a, b: a // b if b else 0,
    Op.MOD: lambda a, b: a % b if b else a,
    Op.CEIL_DIV: lambda a, b: -(-a // b) if b else 0,
    Op.ALIGN_UP: lambda a, b: -(-a // b) * b if b else 0,
    Op.MIN: min,
    Op.MAX: max,
}


# x + 0, x - 0, x * 1, x // 1 are x.
_RIGHT_UNIT: dict[Op, int] = {
    Op.ADD: 0,
    Op.SUB: 0,
    Op.MUL: 1,
    Op.FLOOR_DIV: 1,
    Op.CEIL_DIV: 1,
    Op.ALIGN_UP: 1,
}


def _arith(op: Op, left: Int, right: Int) -> Int:
    one = left.value if left.op is Op.CONST else None
    two = right.value if right.op is Op.CONST else None
    if one is not None and two is not None:
        return integer(_FOLD[op](cast("int", one), cast("int", two)))
    unit = _RIGHT_UNIT.get(op)
    if unit is not None and two == unit:
        return left
    if unit is not None and one == unit and op in (Op.ADD, Op.MUL):
        return right
    if op is Op.MUL and 0 in (one, two):
        return integer(0)
    if left is right and op in (Op.MIN, Op.MAX):
        return left
    return _intern(Int, op, (left, right))


def _compare(op: Op, left: Int, right: Int) -> Bool:
    if left is right:
        return boolean(op is not Op.LT)
    if left.op is Op.CONST and right.op is Op.CONST:
        one, two = cast("int", left.value), cast("int", right.value)
        return boolean(one == two if op is Op.EQ else one < two if op is Op.LT else one <= two)
    if op is Op.EQ and left.op is Op.CONST:
        left, right = right, left
    return _intern(Bool, op, (left, right))


def ceil_div(value: Int | int, divisor: Int | int) -> Int:
    """Quotient rounded towards plus infinity; 0 for a zero divisor."""
    return _arith(Op.CEIL_DIV, integer(value), integer(divisor))


def align_up(value: Int | int, alignment: Int | int) -> Int:
    """`ceil_div(value, alignment) * alignment`: for a positive alignment, the next multiple."""
    return _arith(Op.ALIGN_UP, integer(value), integer(alignment))


def minimum(one: Int | int, *others: Int | int) -> Int:
    """The least of the arguments."""
    result = integer(one)
    for other in others:
        result = _arith(Op.MIN, result, integer(other))
    return result


def maximum(one: Int | int, *others: Int | int) -> Int:
    """The greatest of the arguments."""
    result = integer(one)
    for other in others:
        result = _arith(Op.MAX, result, integer(other))
    return result


def _connect(op: Op, parts: tuple[Bool | bool, ...], unit: Bool) -> Bool:
    flat: dict[Term, None] = {}
    for part in map(boolean, parts):
        if part.op is op:
            flat.update(dict.fromkeys(part.args))
        else:
            flat[part] = None
    flat.pop(unit, None)
    if ~unit in flat or any(part.op is Op.NOT and part.args[0] in flat for part in flat):
        return ~unit
    if len(flat) > 1:
        return _intern(Bool, op, tuple(flat))
    return cast("Bool", next(iter(flat), unit))


def all_of(*parts: Bool | bool) -> Bool:
    """Conjunction of any number of parts (none: true)."""
    return _connect(Op.AND, parts, TRUE)


def any_of(*parts: Bool | bool) -> Bool:
    """Disjunction of any number of parts (none: false)."""
    return _connect(Op.OR, parts, FALSE)


def implies(condition: Bool | bool, consequence: Bool | bool) -> Bool:
    """Material implication."""
    return any_of(~boolean(condition), consequence)


@overload
def ite(condition: Bool | bool, then: Int | int, otherwise: Int | int) -> Int: ...
@overload
def ite(condition: Bool | bool, then: Bool, otherwise: Bool) -> Bool: ...
@overload
def ite(condition: Bool | bool, then: Enum, otherwise: Enum) -> Enum: ...
@overload
def ite(condition: Bool | bool, then: Float, otherwise: Float) -> Float: ...
def ite(condition: Bool | bool, then: Term | int, otherwise: Term | int) -> Term:
    """`then` where the condition holds, else `otherwise`; both sides have one sort."""
    test = boolean(condition)
    one, two = (side if isinstance(side, Term) else integer(side) for side in (then, otherwise))
    if type(one) is not type(two) or one.sort != two.sort:
        kinds = [f"{side.sort_name} {side.sort or ''}".strip() for side in (one, two)]
        raise ModelError(f"ite() joins {' and '.join(kinds)}")
    if test.op is Op.CONST:
        return one if test.value else two
    if one is two:
        return one
    if isinstance(one, Bool) and (one.op is Op.CONST or two.op is Op.CONST):
        two = cast("Bool", two)
        if one.op is Op.CONST:
            return any_of(test, two) if one.value else all_of(~test, two)
        return any_of(~test, one) if two.value else all_of(test, one)
    if test.op is Op.NOT:
        return _intern(type(one), Op.ITE, (test.args[0], two, one), None, one.sort)
    return _intern(type(one), Op.ITE, (test, one, two), None, one.sort)


def to_float(value: Int | int, width: Width) -> Float:
    """The integer rounded to the nearest float of the width (ties to even; too large: infinity)."""
    return _intern(Float, Op.TO_FLOAT, (integer(value),), None, _width(width))


def widen(value: Float) -> Float:
    """A float32 as the equal float64."""
    if value.width == 64:
        return value
    return _intern(Float, Op.WIDEN, (value,), None, 64)


def ceiling(value: Float) -> Float:
    """The least integral float that is not below (C `ceil`: keeps NaN, infinities and -0.0)."""
    return _intern(Float, Op.CEILING, (value,), None, value.width)


def wrap_unsigned(value: Int, bits: int) -> Int:
    """Machine arithmetic that wraps: the value modulo 2**bits."""
    return value % (1 << bits)


def wrap_signed(value: Int, bits: int) -> Int:
    """Two's complement: the value modulo 2**bits in -2**(bits-1)..2**(bits-1)-1."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def saturate(value: Int, limit: int) -> Int:
    """Machine arithmetic that saturates: the value, at most `limit`."""
    return minimum(value, limit)


def _search(node_type: type[T], op: Op, args: tuple[Term, ...], name: str, sort: Sort) -> T:
    """A search whose variable is renamed to `name`, or like it: no other in the search shares it.

    Names that occur once on every path from a root are what lets a reading keep one value per
    variable, and a term move into a search without capture.
    """
    limit, variable, *bodies, fallback = args
    inside = topological(tuple(bodies))
    taken = {node.args[1].name for node in inside if node.op in SEARCHES}
    taken |= {node.name for node in inside if node.op is Op.BOUND and node is not variable}
    taken |= {outer.name for outer in limit.bound | fallback.bound}
    names = itertools.chain([name], map(f"{name}_{{}}".format, itertools.count(2)))
    fresh = next(one for one in names if one not in taken)
    if fresh != variable.name:
        new = _intern(Int, Op.BOUND, (), fresh, None, variable.domain)
        bodies = list(substitute(tuple(bodies), {variable: new}))
        variable = new
    at_most = cast("IntDomain", variable.domain).hi
    return _intern(node_type, op, (limit, variable, *bodies, fallback), at_most, sort)


def _variable(name: str, at_most: int) -> Int:
    """A variable that no other search has, until its search is built and can name it."""
    most: object = at_most
    if not isinstance(most, int) or isinstance(most, bool):
        raise ModelError(f"{name!r}: at_most is the number of candidates, got {most!r}")
    return _intern(
        Int, Op.BOUND, (), f"{_named(name)} {next(_serial)}", None, IntDomain(1, at_most)
    )


def first(
    name: str,
    limit: Int | int,
    such_that: Callable[[Int], Bool],
    *,
    otherwise: Int | int,
    at_most: int,
) -> Int:
    """The first `name` in 1..min(limit, at_most) for which the condition holds, or `otherwise`."""
    variable = _variable(name, at_most)
    args = (integer(limit), variable, boolean(such_that(variable)), integer(otherwise))
    return _search(Int, Op.FIRST, args, name, None)


def greatest(  # noqa: PLR0913 - the parts of the loop, by keyword
    name: str,
    limit: Int | int,
    *,
    where: Callable[[Int], Bool],
    value: Callable[[Int], Float],
    start: Float,
    at_most: int,
) -> Float:
    """The running maximum of `value` over the `name` in 1..min(limit, at_most) with `where`.

    It is the C loop `best = start; for each: if (where && value > best) best = value`.
    """
    variable = _variable(name, at_most)
    body = start._same(value(variable))  # noqa: SLF001 - both of the class Float
    args = (integer(limit), variable, boolean(where(variable)), body, start)
    return _search(Float, Op.GREATEST, args, name, start.width)


def topological(roots: tuple[Term, ...], known: Container[Term] = ()) -> list[Term]:
    """Every node below the roots once, arguments before users (iterative: depth is no limit).

    What is known is left out, with what lies below that alone.
    """
    order: list[Term] = []
    seen: set[Term] = set()
    stack: list[Term | None] = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if node is None:  # the node below it has had all its arguments
            node = stack.pop()
        elif node in seen or node in known:
            continue
        else:
            seen.add(node)
            if node.args:
                stack += (node, None)
                stack += node.args[::-1]
                continue
        if node is not None:
            order.append(node)
    return order


def free_symbols(*roots: Term) -> tuple[Term, ...]:
    """The symbols below the roots in order of appearance, but a record's fields as declared.

    One name with two domains is an error: no reading could tell the two apart.
    """
    return symbols_among(topological(tuple(roots)))


def symbols_among(nodes: Iterable[Term]) -> tuple[Term, ...]:
    """The symbols among the nodes, as `free_symbols` orders them."""
    found = [node for node in nodes if node.op is Op.SYMBOL]
    names: dict[str, Term] = {}
    groups: dict[str, int] = {}
    for symbol in found:
        if names.setdefault(symbol.name, symbol) is not symbol:
            raise ModelError(f"symbol {symbol.name!r} is declared twice with different domains")
        groups.setdefault(_record(symbol), len(groups))
    return tuple(sorted(found, key=lambda one: (groups[_record(one)], one.place)))


def _record(symbol: Term) -> str:
    """The record that the symbol is a field of, or else its own name."""
    return symbol.name if symbol.place is None else symbol.name.rpartition(".")[0]


def set_place(symbol: Term, place: int) -> None:
    """Note where among its record's fields the symbol stands (the first record's word counts)."""
    if symbol.place is None:
        object.__setattr__(symbol, "place", place)


def substitute(roots: tuple[Term, ...], mapping: Mapping[Term, Term]) -> tuple[Term, ...]:
    """The roots with every key of the mapping replaced (once, outermost), simplified on the way.

    What mentions a bound variable is replaced where that is free, not below the search that binds
    it; a search that would capture a variable of a replacement takes another name.
    """
    loose = frozenset[Term]().union(*(new.bound for new in mapping.values()))
    done: dict[Term, Term] = dict(mapping)
    is_local = all(old.op is Op.BOUND for old in mapping)
    for node in topological(roots, _Without(frozenset(mapping)) if is_local else ()):
        if node in done:
            continue
        args = tuple(done.get(arg, arg) for arg in node.args)
        done[node] = (
            _rescoped(node, mapping, loose, args) if node.op in SEARCHES else rebuild(node, args)
        )
    return tuple(done.get(root, root) for root in roots)


class _Without:
    """The terms that none of the bound variables occurs in: what need not be walked for them."""

    def __init__(self, variables: frozenset[Term]) -> None:
        self._variables = variables

    def __contains__(self, term: object) -> bool:
        return self._variables.isdisjoint(cast("Term", term).bound)


def _rescoped(
    search: Term, mapping: Mapping[Term, Term], loose: frozenset[Term], args: tuple[Term, ...]
) -> Term:
    """The search with the mapping applied to its arguments, its own variable apart."""
    variable, bodies = search.args[1], args[2:-1]
    inner = {old: new for old, new in mapping.items() if variable not in old.bound}
    if variable in loose:
        new = _variable(variable.name, cast("int", search.value))
        inner[variable], variable = new, new
    if variable is not search.args[1] or len(inner) < len(mapping):
        bodies = substitute(search.args[2:-1], inner)
    return rebuild(search, (args[0], variable, *bodies, args[-1]))


def rename_bound(search: Term, name: str) -> Term:
    """The same search with its variable renamed to `name`, or like it if another has that name."""
    return _search(type(search), search.op, search.args, name, search.sort)


def rebuild(node: Term, args: tuple[Term, ...]) -> Term:
    """The same operation on other arguments, through the simplifying constructors."""
    if len(args) == len(node.args) and all(map(operator.is_, args, node.args)):
        return node
    match node.op:
        case Op.NOT:
            return ~cast("Bool", args[0])
        case Op.AND:
            return all_of(*cast("tuple[Bool, ...]", args))
        case op if op in _FOLD:
            return _arith(op, cast("Int", args[0]), cast("Int", args[1]))
        case Op.EQ | Op.LT | Op.LE if isinstance(args[0], Int):
            return _compare(node.op, args[0], cast("Int", args[1]))
        case Op.EQ if isinstance(args[0], Bool | Enum):
            return args[0] == args[1]
        case Op.OR:
            return any_of(*cast("tuple[Bool, ...]", args))
        case Op.ITE:
            return ite(cast("Bool", args[0]), cast("Int", args[1]), cast("Int", args[2]))
        case op if op in SEARCHES:
            return _search(type(node), op, args, node.args[1].name, node.sort)
        case _:
            return _intern(type(node), node.op, args, node.value, node.sort, node.domain)
