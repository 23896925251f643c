"""LLVM IR as text: functions of structured loops over i64 counters, pointers and vectors of f32.

Integers that are known are Python's own, and arithmetic on them is done here. Addresses count bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irload.plan.backends.llvm.target import LINE, Target

PREFETCH = "call void @llvm.prefetch.p0(ptr {}, i32 {}, i32 2, i32 1)"
"""Into the second level of the cache."""


@dataclass(frozen=True, slots=True)
class Value:
    """A register or a constant, as it stands in the text, and its type."""

    text: str
    type: str

    def __str__(self) -> str:
        return self.text


Int = int | Value
"""An i64, perhaps known."""


def float_bits(number: float) -> str:
    """A float rounded to f32, as LLVM writes it: the bits of the double of the same value."""
    single = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def _masked(lanes: int) -> str:
    """Declarations as LLVM 20 has them; later versions, which have others, translate what is declared."""
    vector, mask, halves = f"<{lanes} x float>", f"<{lanes} x i1>", f"<{lanes} x i16>"
    return (
        f"declare {vector} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {mask}, {vector})\n"
        f"declare void @llvm.masked.store.v{lanes}f32.p0({vector}, ptr, i32, {mask})\n"
        f"declare {halves} @llvm.masked.load.v{lanes}i16.p0(ptr, i32, {mask}, {halves})\n"
        f"declare void @llvm.masked.store.v{lanes}i16.p0({halves}, ptr, i32, {mask})"
    )


class Module:
    """Functions for one target. Those that are not `kernel` are internal."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._functions: dict[str, Function] = {}
        self._tables: dict[str, str] = {}

    def function(self, name: str, parameters: Sequence[str], *, internal: bool = True) -> Function:
        """A new function. Parameters are `type name`; it returns nothing."""
        made = self._functions[name] = Function(self, name, parameters, internal=internal)
        return made

    def has(self, name: str) -> bool:
        """True where the function exists already."""
        return name in self._functions

    def table(self, name: str, numbers: Sequence[int]) -> Value:
        """A constant array of i64. What has the same name is the same array."""
        listed = ", ".join(f"i64 {n}" for n in numbers)
        self._tables[name] = f"@{name} = internal constant [{len(numbers)} x i64] [{listed}], align 8"
        return Value(f"@{name}", "ptr")

    def text(self) -> str:
        """The module."""
        wide = self.target.lanes * 32
        attributes = f'nounwind "target-cpu"="{self.target.cpu}" "prefer-vector-width"="{wide}"'
        attributes += f' "min-legal-vector-width"="{wide}"'
        attributes += f' "target-features"="{self.target.features}"' if self.target.features else ""
        functions = [function.text() for function in self._functions.values()]
        head = _masked(self.target.lanes)
        return "\n".join([head, *self._tables.values(), *functions, f"attributes #0 = {{ {attributes} }}", ""])


class Function:
    """One function, written from its first instruction to its last. The methods emit and return what they give."""

    def __init__(self, module: Module, name: str, parameters: Sequence[str], *, internal: bool) -> None:
        self.module = module
        self.target = module.target
        self.name = name
        self.internal = internal
        self.lanes = self.target.lanes
        self.vector = f"<{self.lanes} x float>"
        self.integers = f"<{self.lanes} x i32>"
        self.booleans = f"<{self.lanes} x i1>"
        self._parameters = [p.split() for p in parameters]
        self._locals: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def __getitem__(self, name: str) -> Value:
        """A parameter."""
        return next(Value(f"%{n}", t) for t, n in self._parameters if n == name)

    def text(self) -> str:
        """The function."""
        parameters = ", ".join(f"{t} %{n}" for t, n in self._parameters)
        head = f"define {'internal fastcc ' if self.internal else ''}void @{self.name}({parameters}) #0 {{"
        return "\n".join([head, "entry:", *self._locals, *self._lines, "  ret void", "}"])

    # Text

    def emit(self, text: str) -> None:
        """An instruction that gives nothing."""
        self._lines.append(f"  {text}")

    def value(self, type: str, text: str) -> Value:
        """An instruction that gives a value of this type."""
        self._count += 1
        self.emit(f"%v{self._count} = {text}")
        return Value(f"%v{self._count}", type)

    def local(self, nbytes: int) -> Value:
        """Memory on the stack while the function runs, aligned to cache lines."""
        place = Value(f"%local{len(self._locals)}", "ptr")
        self._locals.append(f"  {place} = alloca [{nbytes} x i8], align 64")
        return place

    def call(self, name: str, arguments: Sequence[Int]) -> None:
        """A call of a function of this module."""
        convention = "fastcc " if name != "kernel" else ""
        self.emit(f"call {convention}void @{name}({', '.join(self._typed(a) for a in arguments)})")

    def _typed(self, value: Int) -> str:
        return f"i64 {value}" if isinstance(value, int) else f"{value.type} {value}"

    # Integers

    def add(self, a: Int, b: Int) -> Int:
        """A + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.value("i64", f"add nsw i64 {a}, {b}")

    def subtract(self, a: Int, b: Int) -> Int:
        """A − b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.value("i64", f"sub nsw i64 {a}, {b}")

    def multiply(self, a: Int, b: Int) -> Int:
        """A · b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.value("i64", f"mul nsw i64 {a}, {b}")

    def divide(self, a: Int, b: Int) -> Int:
        """A // b of a number that is not negative."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self.value("i64", f"udiv i64 {a}, {b}")

    def remainder(self, a: Int, b: int) -> Int:
        """A % b of a number that is not negative."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self.value("i64", f"urem i64 {a}, {b}")

    def divmod(self, a: Int, b: Int) -> tuple[Int, Int]:
        """A // b and a % b of a number that is not negative."""
        quotient = self.divide(a, b)
        return quotient, self.subtract(a, self.multiply(quotient, b)) if b != 1 else 0

    def minimum(self, a: Int, b: Int) -> Int:
        """The smaller one."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.value("i64", f"select i1 {self.compare('slt', a, b)}, i64 {a}, i64 {b}")

    def maximum(self, a: Int, b: Int) -> Int:
        """The larger one."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.value("i64", f"select i1 {self.compare('sgt', a, b)}, i64 {a}, i64 {b}")

    def compare(self, how: str, a: Int, b: Int) -> Value:
        """An i1: `how` is eq, ne, slt, sle, sgt or sge."""
        return self.value("i1", f"icmp {how} i64 {a}, {b}")

    def both(self, a: Value, b: Value) -> Value:
        """An i1: a and b."""
        return self.value("i1", f"and i1 {a}, {b}")

    # Memory

    def at(self, pointer: Value, offset: Int) -> Value:
        """The pointer, `offset` bytes further on."""
        return pointer if offset == 0 else self.value("ptr", f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load_pointer(self, pointer: Value, offset: Int = 0) -> Value:
        """A pointer that is stored."""
        return self.value("ptr", f"load ptr, ptr {self.at(pointer, offset)}, align 8")

    def load_int(self, pointer: Value, offset: Int = 0) -> Value:
        """An i64 that is stored."""
        return self.value("i64", f"load i64, ptr {self.at(pointer, offset)}, align 8")

    def hidden(self, number: int) -> Value:
        """A number that the compiler does not know, so that it leaves in place what is computed with it."""
        return self.value("i64", f"load volatile i64, ptr {self.module.table(f'hidden{number}', [number])}, align 8")

    def load_short_int(self, pointer: Value, offset: Int = 0) -> Value:
        """An i32 that is stored, as i64."""
        loaded = self.value("i32", f"load i32, ptr {self.at(pointer, offset)}, align 4")
        return self.value("i64", f"sext i32 {loaded} to i64")

    def load(self, pointer: Value, offset: Int = 0, count: int | None = None, align: int = 4) -> Value:
        """A vector of f32; of `count` elements, which is less than all, the others 0."""
        place = self.at(pointer, offset)
        if count is None or count == self.lanes:
            return self.value(self.vector, f"load {self.vector}, ptr {place}, align {align}")
        name = f"@llvm.masked.load.v{self.lanes}f32.p0"
        arguments = f"ptr {place}, i32 4, {self.booleans} {self.mask(count)}, {self.vector} zeroinitializer"
        return self.value(self.vector, f"call {self.vector} {name}({arguments})")

    def store(self, value: Value, pointer: Value, offset: Int = 0, count: int | None = None) -> None:
        """Store a vector of f32, or its first `count` elements."""
        place = self.at(pointer, offset)
        if count is None or count == self.lanes:
            self.emit(f"store {self.vector} {value}, ptr {place}, align 4")
            return
        name = f"@llvm.masked.store.v{self.lanes}f32.p0"
        self.emit(f"call void {name}({self.vector} {value}, ptr {place}, i32 4, {self.booleans} {self.mask(count)})")

    def load_scalar(self, pointer: Value, offset: Int = 0) -> Value:
        """One f32."""
        return self.value("float", f"load float, ptr {self.at(pointer, offset)}, align 4")

    def store_scalar(self, value: Value, pointer: Value, offset: Int = 0) -> None:
        """Store one f32."""
        self.emit(f"store float {value}, ptr {self.at(pointer, offset)}, align 4")

    def mask(self, count: int) -> Value:
        """The first `count` lanes."""
        lanes = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(self.lanes))
        return Value(f"<{lanes}>", self.booleans)

    def prefetch(self, pointer: Value, offset: Int = 0, *, to_write: bool = False) -> None:
        """Ask for a cache line that will be read or written later."""
        self.emit(PREFETCH.format(self.at(pointer, offset), int(to_write)))

    def prefetch_slowly(self, pointer: Value, lines: int) -> None:
        """Ask for cache lines that follow each other, each some cycles after the one before.

        Each address takes two multiplications by 1. Requests in a burst take all buffers for lines that are under way,
        and loads that miss the first level then wait for the slowest: 25088 × 4096 weights take 15 ms, else 18.
        """
        zero, one = self.hidden(0), self.hidden(1)
        offset: Int = 0
        for line in range(lines):
            self.prefetch(pointer, offset)
            if line + 1 < lines:
                for _ in range(2):
                    offset = self.value("i64", f"xor i64 {offset}, {zero}")
                    offset = self.value("i64", f"mul i64 {offset}, {one}")
                offset = self.add(offset, LINE)

    # Vectors of f32

    def number(self, x: float) -> Value:
        """The same number in all lanes."""
        return Value(f"splat (float {float_bits(x)})", self.vector)

    def zero(self) -> Value:
        """Zeros."""
        return Value("zeroinitializer", self.vector)

    def splat(self, scalar: Value) -> Value:
        """A scalar in all lanes."""
        first = self.value(self.vector, f"insertelement {self.vector} poison, {scalar.type} {scalar}, i64 0")
        text = f"shufflevector {self.vector} {first}, {self.vector} poison, {self.integers} zeroinitializer"
        return self.value(self.vector, text)

    def broadcast(self, pointer: Value, offset: Int = 0) -> Value:
        """One stored f32 in all lanes."""
        return self.splat(self.load_scalar(pointer, offset))

    def arithmetic(self, operation: str, a: Value, b: Value) -> Value:
        """fadd, fsub, fmul or fdiv."""
        return self.value(a.type, f"{operation} {a.type} {a}, {b}")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """A · b + c, rounded once."""
        text = f"call {self.vector} @llvm.fma.v{self.lanes}f32({self.vector} {a}, {self.vector} {b}, {self.vector} {c})"
        return self.value(self.vector, text)

    def unary(self, name: str, a: Value) -> Value:
        """An intrinsic of one vector: sqrt, rint, floor, ceil, fabs."""
        return self.value(self.vector, f"call {self.vector} @llvm.{name}.v{self.lanes}f32({self.vector} {a})")

    def compare_floats(self, how: str, a: Value, b: Value) -> Value:
        """A vector of i1: `how` is oeq, olt, ogt, ole, oge or uno."""
        return self.value(self.booleans, f"fcmp {how} {self.vector} {a}, {b}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """A where the condition holds, else b."""
        text = f"select {condition.type} {condition}, {a.type} {a}, {b.type} {b}"
        return self.value(a.type, text)

    def reduce(self, operation: str, a: Value) -> Value:
        """All lanes to one float: fadd (pairwise), fmax or fmin (which drop NaN)."""
        start = "float -0.0, " if operation == "fadd" else ""
        name = f"@llvm.vector.reduce.{operation}.v{self.lanes}f32"
        flags = "reassoc " if operation == "fadd" else ""
        return self.value("float", f"call {flags}float {name}({start}{self.vector} {a})")

    # Control flow

    def loop(
        self,
        start: Int,
        stop: Int,
        step: Int,
        body: Callable[[Value, list[Value]], Sequence[Value] | None],
        carried: Sequence[Value] = (),
    ) -> list[Value]:
        """`for i in range(start, stop, step)`. `body` takes i and what is carried, and gives what is carried on."""
        self._count += 1
        n = self._count
        before = self._block
        empty = not (isinstance(start, int) and isinstance(stop, int) and start < stop)
        if empty:
            self.emit(f"br i1 {self.compare('slt', start, stop)}, label %loop{n}, label %end{n}")
        else:
            self.emit(f"br label %loop{n}")
        self._label(f"loop{n}")
        at = len(self._lines)
        index = Value(f"%i{n}", "i64")
        values = [Value(f"%c{n}_{k}", v.type) for k, v in enumerate(carried)]
        results = list(body(index, values) or ())
        following = self.value("i64", f"add nsw i64 {index}, {step}")
        self.emit(f"br i1 {self.compare('slt', following, stop)}, label %loop{n}, label %end{n}")
        last = self._block
        heads = [f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{last} ]"]
        for value, first, result in zip(values, carried, results, strict=True):
            heads.append(f"  {value} = phi {value.type} [ {first}, %{before} ], [ {result}, %{last} ]")
        self._lines[at:at] = heads
        self._label(f"end{n}")
        if not empty:
            return results
        return [
            self.value(first.type, f"phi {first.type} [ {first}, %{before} ], [ {result}, %{last} ]")
            for first, result in zip(carried, results, strict=True)
        ]

    def loop_until(self, done: Callable[[], Value], body: Callable[[Value, list[Value]], object]) -> None:
        """Count turns from 0, asking `done` before each."""
        self._count += 1
        n = self._count
        before = self._block
        self.emit(f"br label %until{n}")
        self._label(f"until{n}")
        at = len(self._lines)
        turn = Value(f"%i{n}", "i64")
        self.emit(f"br i1 {done()}, label %end{n}, label %turn{n}")
        self._label(f"turn{n}")
        body(turn, [])
        following = self.value("i64", f"add i64 {turn}, 1")
        self._lines.insert(at, f"  {turn} = phi i64 [ 0, %{before} ], [ {following}, %{self._block} ]")
        self.emit(f"br label %until{n}")
        self._label(f"end{n}")

    def when(self, condition: Value, body: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """`if condition: body() else: otherwise()`."""
        self._count += 1
        n = self._count
        self.emit(f"br i1 {condition}, label %then{n}, label %{'else' if otherwise else 'end'}{n}")
        self._label(f"then{n}")
        body()
        self.emit(f"br label %end{n}")
        if otherwise is not None:
            self._label(f"else{n}")
            otherwise()
            self.emit(f"br label %end{n}")
        self._label(f"end{n}")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name
