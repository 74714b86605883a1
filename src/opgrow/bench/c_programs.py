"""C code of a model compiled and timed: an object file for its bytes, a program for its labels and its time.

The function under test is compiled apart from the program that calls it, so that no call can be optimised
away, and its inputs are of the type that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..export.c_size import linked_size, object_sizes, run_tool

__all__ = ["CFunction", "CProgram", "build"]

_MAIN = """\
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int {call}(const {kind} *x);

static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}}

int main(int argc, char **argv)
{{
    static const int bits[{n_inputs}] = {{{bits}}};
    const long n = argc > 2 ? atol(argv[2]) : 0;
    const size_t size = (size_t)n * {n_inputs};
    float *raw = malloc(size * sizeof *raw);
    {kind} *x = malloc(size * sizeof *x);
    FILE *file = fopen(argv[1], "rb");
    if (n < 1 || !raw || !x || !file || fread(raw, sizeof *raw, size, file) != size) return 1;
    for (size_t i = 0; i < size; i++) {{
        const double v = ldexp(raw[i], bits[i % {n_inputs}]);
        x[i] = {convert};
    }}
    if (argc > 3) {{
        for (long i = 0; i < n; i++) printf("%d\\n", {call}(x + i * {n_inputs}));
        return 0;
    }}
    volatile long sum = 0;
    for (long passes = 1;; passes *= 2) {{
        const double started = now();
        for (long p = 0; p < passes; p++)
            for (long i = 0; i < n; i++) sum += {call}(x + i * {n_inputs});
        const double taken = now() - started;
        if (taken > 2e7) {{
            printf("%.9g\\n", taken / ((double)passes * (double)n));
            return 0;
        }}
    }}
}}
"""
#: How a number becomes an input of each type; integers have as many fractional bits as the model says.
_CONVERT = {
    "float": "(float)v",
    "double": "v",
    "int32_t": "v >= 2147483520.0 ? INT32_MAX : v <= -2147483520.0 ? -INT32_MAX : (int32_t)lrint(v)",
}


@dataclass(frozen=True)
class CFunction:
    """A C file with ``int call(const kind *x)``, which gives the index of a class.

    Attributes
    ----------
    source : the file
    call, kind : the function's name, and the type of its inputs: "float", "double" or "int32_t"
    bits : fractional bits of each input; one number for all of them, or one for each
    flags : what the compiler needs to know to compile it
    """

    source: Path
    call: str
    kind: str = "float"
    bits: tuple[int, ...] = (0,)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class CProgram:
    """A compiled function with a file of rows; ``n_bytes`` are code and constants, compiled for size."""

    program: Path
    rows: Path
    n_rows: int
    n_bytes: int

    def labels(self) -> np.ndarray:
        """The index of each row's class."""
        return np.array(self._run("labels").split(), dtype=int)

    def seconds(self) -> float:
        """Processor time for a row, the mean over 20 milliseconds or more."""
        return 1e-9 * float(self._run())

    def _run(self, *arguments: str) -> str:
        return run_tool(str(self.program), str(self.rows), str(self.n_rows), *arguments)


def build(
    function: CFunction,
    x: np.ndarray,
    compiler: str,
    level: str = "O2",
    sizing: tuple[str, ...] | None = None,
) -> CProgram:
    """Compile a function for its size (-Os), and for its speed (such as -O2) with a program that calls it.

    ``sizing`` is another compiler, and its flags, by which the size is measured of a linked program.
    """
    source, n_inputs = function.source, x.shape[1]
    bits = function.bits * n_inputs if len(function.bits) == 1 else function.bits
    main = source.with_name(f"{source.stem}_main.c")
    names = {"call": function.call, "kind": function.kind, "convert": _CONVERT[function.kind]}
    main.write_text(_MAIN.format(**names, n_inputs=n_inputs, bits=", ".join(map(str, bits))))
    rows, program = source.with_suffix(".rows"), source.with_suffix(".out")
    np.ascontiguousarray(x, np.float32).tofile(rows)
    made = source.with_suffix(".o")
    for step in (["-c", str(source), "-o", str(made)], [str(main), str(made), "-lm", "-o", str(program)]):
        run_tool(compiler, "-std=c99", f"-{level}", *function.flags, *step)
    if sizing is not None:
        return CProgram(program, rows, len(x), _linked(function, n_inputs, sizing))
    return CProgram(program, rows, len(x), sum(object_sizes(source, compiler, function.flags)))


def _linked(function: CFunction, n_inputs: int, sizing: tuple[str, ...]) -> int:
    """What a program with a function takes more than one without it."""
    compiler, *flags = sizing
    folder, kind = function.source.parent, function.kind
    main, empty = folder / "sized_main.c", folder / "sized_empty.c"
    include, face = "#include <stdint.h>", f"int {function.call}(const {kind} *x)"
    called = f"int main(void) {{ return {function.call}(x); }}"
    main.write_text(f"{include}\n{face};\n{kind} x[{n_inputs}];\n{called}\n")
    empty.write_text(f"{include}\n{face};\n{face} {{ return x[0] > 0; }}\n")
    with_it = linked_size([main, function.source], compiler, (*flags, *function.flags))
    return with_it - linked_size([main, empty], compiler, flags)
