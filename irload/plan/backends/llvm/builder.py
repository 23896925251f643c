"""Writes LLVM IR: functions with structured control flow over typed values.

Integers that are constants of the code are Python ints; arithmetic on them emits no code. Offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.values import (
    SIZES,
    AnyBool,
    AnyInt,
    Bool,
    Int,
    LlvmValue,
    Pointer,
    Vec,
    float_bits,
    literal,
    parsed,
    typed,
    vec_type,
)

ValueT = TypeVar("ValueT", bound=LlvmValue)

__all__ = ["AnyBool", "AnyInt", "Bool", "Function", "Int", "LlvmValue", "Module", "Pointer", "Vec"]

PREFETCH = "call void @llvm.prefetch.p0(ptr {}, i32 {}, i32 2, i32 1)"
"""Prefetches a cache line into the L2 cache."""
REUSED = ("add ", "sub ", "mul ", "udiv ", "icmp ", "select i1", "getelementptr ")
"""Instructions whose result is reused if they are repeated in a block. LLVM takes longer to eliminate duplicates."""


def _masked(lanes: int) -> str:
    """Declarations of masked loads and stores in the syntax of LLVM 20, which later versions upgrade."""
    declared: list[str] = []
    for element in ("f32", "i16", "i8"):
        kind, name, mask = vec_type(element, lanes), f"v{lanes}{element}.p0", f"<{lanes} x i1>"
        declared.append(f"declare {kind} @llvm.masked.load.{name}(ptr, i32, {mask}, {kind})")
        declared.append(f"declare void @llvm.masked.store.{name}({kind}, ptr, i32, {mask})")
    return "\n".join(declared)


class Module:
    """The functions of one kernel for one target. All but `kernel` are internal."""

    def __init__(self, target: Target, *, optimized: bool = False) -> None:
        self.target = target
        self._optimized = optimized
        self.functions: dict[str, Function] = {}
        self.tables: dict[str, str] = {}

    def function(self, name: str, parameters: Sequence[str], *, internal: bool = True) -> Function:
        """Add a function without a result. Each parameter is "type name"."""
        added = self.functions[name] = Function(self, name, parameters, internal=internal)
        return added

    def text(self) -> str:
        """The module as LLVM IR."""
        wide = self.target.lanes * 32
        attributes = f'nounwind "target-cpu"="{self.target.cpu}" "prefer-vector-width"="{wide}"'
        attributes += f' "min-legal-vector-width"="{wide}"'
        attributes += f' "target-features"="{self.target.features}"' if self.target.features else ""
        attributes += ' "no-builtins"' if self._optimized else ""  # LLVM's passes must not call memcpy
        functions = (function.text() for function in self.functions.values())
        head = _masked(self.target.lanes)
        return "\n".join([head, *self.tables.values(), *functions, f"attributes #0 = {{ {attributes} }}", ""])


class Function:
    """A function under construction. Methods append instructions and return their results."""

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
        self._computed: dict[str, Any] = {}  # results of the current block, by instruction
        self._branch = 0, 0
        """The number of the last `when` that ended, and the line of its branch."""

    def __getitem__(self, name: str) -> Any:
        """A parameter."""
        return next(typed(self, f"%{n}", t) for t, n in self._parameters if n == name)

    def text(self) -> str:
        """The function as LLVM IR."""
        parameters = ", ".join(f"{t} %{n}" for t, n in self._parameters)
        head = f"define {'internal fastcc ' if self.internal else ''}void @{self.name}({parameters}) #0 {{"
        return "\n".join([head, "entry:", *self._locals, *self._lines, "  ret void", "}"])

    # Text

    def emit(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}")

    def value(self, type: str, text: str) -> Any:
        """Append an instruction with a result of this type. Integer arithmetic repeated within a block is reused."""
        result = self._computed.get(text)
        if result is None:
            self._count += 1
            self.emit(f"%v{self._count} = {text}")
            result = typed(self, f"%v{self._count}", type)
            if text.startswith(REUSED):
                self._computed[text] = result
        return result

    def local(self, nbytes: int) -> Pointer:
        """Allocate bytes on the stack, aligned to cache lines."""
        address = Pointer(self, f"%local{len(self._locals)}", "ptr")
        self._locals.append(f"  {address} = alloca [{nbytes} x i8], align 64")
        return address

    def stored(self, value: Vec) -> Pointer:
        """Store a vector on the stack, so that code can load lanes by their index."""
        address = self.local(SIZES[value.element] * value.lanes)
        self.store(value, address)
        return address

    def table(self, name: str, numbers: Sequence[int]) -> Pointer:
        """A constant array of i64 in the module, identified by its name."""
        listed = ", ".join(f"i64 {n}" for n in numbers)
        self.module.tables[name] = f"@{name} = internal constant [{len(numbers)} x i64] [{listed}], align 8"
        return Pointer(self, f"@{name}", "ptr")

    def constant(self, text: str, type: str) -> Any:
        """A constant in LLVM's notation."""
        return typed(self, text, type)

    def call(self, name: str, arguments: Mapping[str, int | LlvmValue], write: Callable[[Function], None]) -> None:
        """Call a function of this module. `arguments`: by parameter name. On the first call, `write` emits its body."""
        if name not in self.module.functions:
            parameters = [f"{'i64' if isinstance(a, int) else a.type} {n}" for n, a in arguments.items()]
            write(self.module.function(name, parameters))
        self.emit(f"call fastcc void @{name}({', '.join(map(self._typed, arguments.values()))})")

    def _typed(self, value: int | LlvmValue) -> str:
        return f"i64 {value}" if isinstance(value, int) else f"{value.type} {value}"

    # Integers

    def integer(self, number: AnyInt) -> Int:
        """An i64 as a value that loops can carry."""
        return number if isinstance(number, Int) else Int(self, str(number), "i64")

    def minimum(self, a: AnyInt, b: AnyInt) -> AnyInt:
        """The smaller of two integers."""
        return self._chosen("slt", min, a, b)

    def maximum(self, a: AnyInt, b: AnyInt) -> AnyInt:
        """The larger of two integers."""
        return self._chosen("sgt", max, a, b)

    def compare(self, how: str, a: AnyInt, b: AnyInt) -> Bool:
        """Compare two i64 as LLVM's icmp does: eq, ne, slt, ult and the like."""
        return self.value("i1", f"icmp {how} i64 {a}, {b}")

    def equal(self, a: AnyInt, b: AnyInt) -> Bool:
        """An i1, true if both are equal at run time. `==` compares Python objects instead."""
        return self.compare("eq", a, b)

    def differ(self, a: AnyInt, b: AnyInt) -> Bool:
        """An i1, true if both differ at run time."""
        return self.compare("ne", a, b)

    def _chosen(self, how: str, known: Callable[[int, int], int], a: AnyInt, b: AnyInt) -> AnyInt:
        if isinstance(a, int) and isinstance(b, int):
            return known(a, b)
        return self.value("i64", f"select i1 {self.compare(how, a, b)}, i64 {a}, i64 {b}")

    # Memory

    def load_pointer(self, pointer: Pointer, offset: AnyInt = 0) -> Pointer:
        """Load a pointer."""
        return self.value("ptr", f"load ptr, ptr {pointer + offset}, align 8")

    def load_int(self, pointer: Pointer, offset: AnyInt = 0, element: str = "i64") -> Int:
        """Load an integer as i64: from i64, from i32 (sign-extended), from i16 or i8 (zero-extended)."""
        loaded = self.value(element, f"load {element}, ptr {pointer + offset}, align {SIZES[element]}")
        if element == "i64":
            return loaded
        return self.value("i64", f"{'sext' if element == 'i32' else 'zext'} {element} {loaded} to i64")

    def load(
        self,
        pointer: Pointer,
        offset: AnyInt = 0,
        count: AnyInt | None = None,
        align: int | None = None,
        element: str = "f32",
    ) -> Vec:
        """Load a vector; lanes from `count` on are 0 and not read. A `count` is supported for f32, i16 and i8."""
        size, kind, address = SIZES[element], vec_type(element, self.lanes), pointer + offset
        if count is None or (isinstance(count, int) and count >= self.lanes):
            return self.value(kind, f"load {kind}, ptr {address}, align {align or size}")
        name = f"@llvm.masked.load.v{self.lanes}{element}.p0"
        arguments = f"ptr {address}, i32 {size}, {self.booleans} {self.mask(count)}, {kind} zeroinitializer"
        return self.value(kind, f"call {kind} {name}({arguments})")

    def store(self, value: Vec, pointer: Pointer, offset: AnyInt = 0, count: AnyInt | None = None) -> None:
        """Store a vector, or its first `count` lanes. A `count` is supported for f32 and i16."""
        size, address = SIZES[value.element], pointer + offset
        if count is None or (isinstance(count, int) and count >= value.lanes):
            self.emit(f"store {value.type} {value}, ptr {address}, align {size}")
            return
        name = f"@llvm.masked.store.v{value.lanes}{value.element}.p0"
        mask = f"{self.booleans} {self.mask(count)}"
        self.emit(f"call void {name}({value.type} {value}, ptr {address}, i32 {size}, {mask})")

    def load_packed(self, pointer: Pointer, offset: AnyInt, element: str, lanes: int) -> Vec:
        """Load a vector of any number of lanes from any address."""
        kind = vec_type(element, lanes)
        return self.value(kind, f"load {kind}, ptr {pointer + offset}, align 1")

    def load_scalar(self, pointer: Pointer, offset: AnyInt = 0, element: str = "f32") -> Vec:
        """Load one number."""
        kind = vec_type(element, 1)
        return self.value(kind, f"load {kind}, ptr {pointer + offset}, align {SIZES[element]}")

    def store_scalar(self, value: int | LlvmValue, pointer: Pointer, offset: AnyInt = 0) -> None:
        """Store one number or address; a Python number is an i64."""
        size = SIZES[value.element] if isinstance(value, Vec) else 8
        self.emit(f"store {self._typed(value)}, ptr {pointer + offset}, align {size}")

    def store_i32(self, number: AnyInt, pointer: Pointer, offset: AnyInt = 0) -> None:
        """Store the lower half of an i64."""
        self.store_scalar(self.integer(number).cast("trunc", "i32"), pointer, offset)

    def mask(self, count: AnyInt) -> Bool:
        """A mask of the first `count` lanes."""
        if isinstance(count, Int):
            return self.numbers(range(self.lanes)).compare("slt", self.splat(count.cast("trunc", "i32")))
        lanes = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(self.lanes))
        return Bool(self, f"<{lanes}>", self.booleans)

    def numbers(self, numbers: Sequence[int], element: str = "i32") -> Vec:
        """A vector of constant integers."""
        listed = ", ".join(f"{element} {n}" for n in numbers)
        return Vec(self, f"<{listed}>", vec_type(element, len(numbers)))

    def gather(self, base: Pointer, indices: Vec, element: str = "f32", unit: str | None = None) -> Vec:
        """Load one element per index. Indices are in elements from `base` on, or in units of the type `unit`."""
        kind, pointers = vec_type(element, self.lanes), f"<{self.lanes} x ptr>"
        counted = vec_type(unit or element, 1)
        addresses = self.value(pointers, f"getelementptr {counted}, ptr {base}, {indices.type} {indices}")
        name = f"@llvm.masked.gather.v{self.lanes}{element}.v{self.lanes}p0"
        every = f"{self.booleans} splat (i1 true), {kind} zeroinitializer"
        return self.value(kind, f"call {kind} {name}({pointers} {addresses}, i32 {SIZES[element]}, {every})")

    def prefetch(self, pointer: Pointer, offset: AnyInt = 0, *, to_write: bool = False) -> None:
        """Prefetch a cache line into L2, for reading or for writing."""
        self.emit(PREFETCH.format(pointer + offset, int(to_write)))

    # Vectors of f32

    def number(self, x: float) -> Vec:
        """A number in all lanes."""
        return Vec(self, f"splat (float {float_bits(x)})", self.vector)

    def zero(self, element: str = "f32", lanes: int | None = None) -> Vec:
        """Zeros, by default f32 in as many lanes as the target has."""
        return Vec(self, "zeroinitializer", vec_type(element, lanes or self.lanes))

    def splat(self, scalar: Vec | Int) -> Vec:
        """Broadcast a scalar."""
        kind = vec_type(parsed(scalar.type)[0], self.lanes)
        first = self.value(kind, f"insertelement {kind} poison, {scalar.type} {scalar}, i64 0")
        return self.value(kind, f"shufflevector {kind} {first}, {kind} poison, {self.integers} zeroinitializer")

    def shuffle(self, a: Vec, b: Vec, lanes: Sequence[int]) -> Vec:
        """A vector of these lanes of a concatenated with b, by shufflevector."""
        kind, listed = vec_type(a.element, len(lanes)), ", ".join(f"i32 {n}" for n in lanes)
        return self.value(kind, f"shufflevector {a.type} {a}, {b.type} {b}, <{len(lanes)} x i32> <{listed}>")

    def broadcast(self, pointer: Pointer, offset: AnyInt = 0) -> Vec:
        """Load one f32 and broadcast it."""
        return self.splat(self.load_scalar(pointer, offset))

    def fma(self, a: Vec, b: Vec, c: Vec) -> Vec:
        """a · b + c, rounded once."""
        suffix = f"v{a.lanes}{a.element}" if a.lanes > 1 else a.element
        return self.value(a.type, f"call {a.type} @llvm.fma.{suffix}({a.type} {a}, {a.type} {b}, {a.type} {c})")

    def select(self, condition: AnyBool, a: ValueT, b: ValueT) -> ValueT:
        """a if the condition is true, else b."""
        if isinstance(condition, bool):
            return a if condition else b
        return self.value(a.type, f"select {condition.type} {condition}, {a.type} {a}, {b.type} {b}")

    # Control flow

    def range(self, start: AnyInt, stop: AnyInt, step: AnyInt = 1, carried: list[Any] | None = None) -> Iterator[Int]:
        """`for index in f.range(start, stop)`: a loop. The body of the Python loop runs once and emits the loop's body.

        `carried`: the initial values (phi nodes), which the body replaces by the next values. After the loop it has the
        final values.
        """
        self._count += 1
        n = self._count
        before, state = self._block, [] if carried is None else carried
        empty = not (isinstance(start, int) and isinstance(stop, int) and start < stop)
        if empty:
            self.emit(f"br i1 {self.compare('slt', start, stop)}, label %loop{n}, label %end{n}")
        else:
            self.emit(f"br label %loop{n}")
        self._label(f"loop{n}")
        at, first = len(self._lines), list(state)
        index = Int(self, f"%i{n}", "i64")
        state[:] = values = [typed(self, f"%c{n}_{k}", v.type) for k, v in enumerate(first)]
        yield index
        following = self.value("i64", f"add nsw i64 {index}, {step}")
        self.emit(f"br i1 {self.compare('slt', following, stop)}, label %loop{n}, label %end{n}")
        last = self._block
        heads = [f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{last} ]"]
        for value, initial, result in zip(values, first, state, strict=True):
            heads.append(f"  {value} = phi {value.type} [ {initial}, %{before} ], [ {result}, %{last} ]")
        self._lines[at:at] = heads
        self._label(f"end{n}")
        if empty:
            state[:] = [
                self.value(initial.type, f"phi {initial.type} [ {initial}, %{before} ], [ {result}, %{last} ]")
                for initial, result in zip(first, state, strict=True)
            ]

    def until(self, done: Callable[[], AnyBool]) -> Iterator[Int]:
        """`for turn in f.until(done)`: a loop until `done`, evaluated before each iteration. `turn` counts from 0."""
        self._count += 1
        n = self._count
        before = self._block
        self.emit(f"br label %until{n}")
        self._label(f"until{n}")
        at = len(self._lines)
        turn = Int(self, f"%i{n}", "i64")
        self.emit(f"br i1 {literal(done())}, label %end{n}, label %turn{n}")
        self._label(f"turn{n}")
        yield turn
        following = self.value("i64", f"add i64 {turn}, 1")
        self._lines.insert(at, f"  {turn} = phi i64 [ 0, %{before} ], [ {following}, %{self._block} ]")
        self.emit(f"br label %until{n}")
        self._label(f"end{n}")

    @contextmanager
    def when(self, condition: AnyBool, carried: list[Any] | None = None) -> Generator[None]:
        """`with f.when(condition)`: the statements of the body run if the condition is true.

        `carried`: values that the body may replace (phi nodes).
        """
        self._count += 1
        n = self._count
        before, first = self._block, list(carried or ())
        self.emit(f"br i1 {literal(condition)}, label %then{n}, label %end{n}")
        branch = len(self._lines) - 1
        self._label(f"then{n}")
        yield
        last = self._block
        self.emit(f"br label %end{n}")
        self._label(f"end{n}")
        self._branch = n, branch
        for k, value in enumerate(first):
            if carried is not None and carried[k] is not value:
                text = f"phi {value.type} [ {value}, %{before} ], [ {carried[k]}, %{last} ]"
                carried[k] = self.value(value.type, text)

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """`with f.otherwise()`, directly after `when`: the statements of the body run if its condition is false."""
        n, branch = self._branch
        if self._lines.pop() != f"end{n}:":
            raise ValueError("otherwise() does not follow when()")
        self._lines[branch] = self._lines[branch].replace(f"label %end{n}", f"label %else{n}")
        self._label(f"else{n}")
        yield
        self.emit(f"br label %end{n}")
        self._label(f"end{n}")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block, self._computed = name, {}
